package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// LoadPeak is the peak rate of a load. Second is the maximum number of requests or watch openings in one second.
type LoadPeak struct {
	Load   string
	Path   string // in the file
	Opens  bool   // the load opens watches; to open a watch takes one or two requests
	Second float64
}

// PhasePeak is the maximum number of requests that all loads together send in one second of a phase.
type PhasePeak struct {
	Phase    string
	Requests float64 // per second
	Opening  float64 // watches opened per second
	Watches  int     // maximum number of watches that are open at the end of the phase
	Loads    []LoadPeak
}

// Most returns the total number of requests and opened watches per second.
func (p PhasePeak) Most() float64 { return p.Requests + p.Opening }

// Peaks returns the peak of each phase. It assumes that the peaks of all loads occur at the same time. For Poisson
// arrivals it uses the mean rate.
func (s *Scenario) Peaks() []PhasePeak {
	var all []PhasePeak
	held := 0
	for i := range s.Phases {
		p := PhasePeak{Phase: s.Phases[i].Name, Watches: held}
		for _, l := range s.Loads() {
			if l.Phase != "" && l.Phase != p.Phase {
				continue
			}
			peak := LoadPeak{Load: l.Name, Path: l.Path, Opens: l.OpensWatches(), Second: l.peak()}
			p.Loads = append(p.Loads, peak)
			switch {
			case !peak.Opens:
				p.Requests += peak.Second
				continue
			case l.Hold && l.Phase != "":
				held += l.Count
			}
			p.Opening += min(peak.Second, float64(l.Count))
			p.Watches += l.Count
		}
		all = append(all, p)
	}
	return all
}

// Peak returns the peak of the phase with the highest Most.
func (s *Scenario) Peak() (highest PhasePeak) {
	for _, p := range s.Peaks() {
		if p.Most() > highest.Most() || highest.Phase == "" {
			highest = p
		}
	}
	return highest
}

// CheckRate returns an error if the scenario's peak exceeds most, in requests per second.
func (s *Scenario) CheckRate(most Rate) error {
	p := s.Peak()
	if p.Most() <= float64(most) {
		return nil
	}
	slices.SortStableFunc(p.Loads, func(a, b LoadPeak) int { return cmp.Compare(b.Second, a.Second) })
	var parts []string
	path := ""
	for _, l := range p.Loads {
		if l.Second > 0 && len(parts) < 5 {
			parts = append(parts, fmt.Sprintf("%s %s/s", l.Load, plainRate(l.Second)))
		}
		if path == "" {
			path = l.Path
		}
	}
	return s.Errorf(path, "lower the rates with --set, or raise --max-rate", "the loads of phase %s send up to %s requests/s (%s), but --max-rate is %s", p.Phase, plainRate(p.Most()), strings.Join(parts, ", "), most)
}

func plainRate(v float64) string { return plain(math.Round(v*100) / 100) }

// peak returns the maximum number of arrivals of the load in one second.
func (l *Load) peak() float64 {
	rate := float64(l.Rate)
	if l.Recorded != nil {
		at := make([]float64, len(l.Recorded.Entries))
		for i, e := range l.Recorded.Entries {
			at[i] = e.At.D().Seconds() / max(l.Speed, minSpeed)
		}
		slices.Sort(at)
		return float64(maxWithin(at, 1) * max(l.Copies, 1))
	}
	switch s := l.Shape; s.Kind {
	case "ramp", "step":
		return max(rate, float64(s.EndRate()))
	case "sine":
		return rate * (1 + s.Amplitude)
	case "burst":
		return rate + float64(s.Burst)*max(1, 1/max(s.Every.D().Seconds(), minEvery.Seconds()))
	case "replay":
		at := make([]float64, len(s.Times))
		for i, t := range s.Times {
			at[i] = t / max(s.Speed, minSpeed)
		}
		return float64(maxWithin(at, 1))
	}
	return rate
}

// maxWithin returns the maximum number of times in `at` that lie within an interval shorter than length. `at` must be
// sorted.
func maxWithin(at []float64, length float64) (most int) {
	first := 0
	for i := range at {
		for at[i]-at[first] >= length {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// Longest returns the maximum total time of all phases. It does not include the time before and after the phases.
func (s *Scenario) Longest() time.Duration { return LongestOf(s.Phases...) }
