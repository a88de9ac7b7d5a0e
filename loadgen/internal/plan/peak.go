package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Peak is the maximum number of requests that all loads together send in one second of a phase. It assumes that the
// peaks of all loads occur at the same time. For Poisson arrivals it uses the mean rate.
type Peak struct {
	Phase    string
	Requests float64 // requests per second
	Opening  float64 // watches opened per second; opening a watch takes one or two requests
	Watches  int     // maximum number of watches that are open at the end of the phase
	Loads    []Load
}

// Most returns the total number of requests and opened watches per second.
func (p Peak) Most() float64 { return p.Requests + p.Opening }

func (p *Plan) addPeaks() {
	held := 0
	for i := range p.Phases {
		peak := Peak{Phase: p.Phases[i].Name, Watches: held}
		for _, l := range p.Loads {
			if l.Phase != "" && l.Phase != peak.Phase {
				continue
			}
			peak.Loads = append(peak.Loads, l)
			switch {
			case !l.OpensWatches():
				peak.Requests += l.Peak
				continue
			case l.Hold && l.Phase != "":
				held += l.Count
			}
			peak.Opening += min(l.Peak, float64(l.Count))
			peak.Watches += l.Count
		}
		if p.Peaks = append(p.Peaks, peak); i == 0 || peak.Most() > p.Highest.Most() {
			p.Highest = peak
		}
	}
}

// CheckRate returns an error if the highest peak of the loads, in requests per second, exceeds most.
func (p *Plan) CheckRate(most scenario.Rate) error {
	peak := p.Highest
	if peak.Most() <= float64(most) {
		return nil
	}
	loads := slices.SortedStableFunc(slices.Values(peak.Loads), func(a, b Load) int { return cmp.Compare(b.Peak, a.Peak) })
	var parts []string
	path := ""
	for _, l := range loads {
		if l.Peak > 0 && len(parts) < 5 {
			parts = append(parts, fmt.Sprintf("%s %s/s", l.Name, plainRate(l.Peak)))
		}
		if path == "" {
			path = l.Path
		}
	}
	return p.Errorf(path, "lower the rates with --set, or raise --max-rate", "the loads of phase %s send up to %s requests/s (%s), but --max-rate is %s", peak.Phase, plainRate(peak.Most()), strings.Join(parts, ", "), most)
}

// leastSpeed and leastEvery (in seconds) are lower than all valid values, so that no division is by zero.
const leastSpeed, leastEvery = 0.01, 0.01

func plainRate(v float64) string { return plain(math.Round(v*100) / 100) }

// peak returns the maximum number of arrivals of the load in one second.
func (l Load) peak() float64 {
	rate := float64(l.Rate)
	if l.Recorded != nil {
		at := make([]float64, len(l.Recorded.Entries))
		for i, e := range l.Recorded.Entries {
			at[i] = e.At.D().Seconds() / max(l.Speed, leastSpeed)
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
		return rate + float64(s.Burst)*max(1, 1/max(s.Every.D().Seconds(), leastEvery))
	case "replay":
		at := make([]float64, len(s.Times))
		for i, t := range s.Times {
			at[i] = t / max(s.Speed, leastSpeed)
		}
		return float64(maxWithin(at, 1))
	}
	return rate
}

// maxWithin returns the maximum number of times in `at` (sorted) that lie within an interval shorter than length.
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

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
