package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// LoadPeak is the most that a load sends in a second.
type LoadPeak struct {
	Load   string
	Path   string // in the file
	Opens  bool   // watches, of which each opening is one request or two
	Second float64
}

// PhasePeak is the most that all loads send in a second of a phase.
type PhasePeak struct {
	Phase    string
	Requests float64 // per second
	Opening  float64 // watches opened per second
	Watches  int     // open at its end at most
	Loads    []LoadPeak
}

// Most is the sum of requests and openings of watches.
func (p PhasePeak) Most() float64 { return p.Requests + p.Opening }

// Peaks are the phases with the most that loads send in a second of each, as if the peaks of all loads came in one. Arrivals
// of a Poisson process count by their mean.
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

// Peak is the phase with the highest Most.
func (s *Scenario) Peak() (highest PhasePeak) {
	for _, p := range s.Peaks() {
		if p.Most() > highest.Most() || highest.Phase == "" {
			highest = p
		}
	}
	return highest
}

// CheckRate refuses a scenario whose peak is over a rate, in requests per second.
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
	return s.Errorf(path, "lower the rates by --set, or raise --max-rate", "phase %s sends up to %s requests/s (%s), and --max-rate is %s", p.Phase, plainRate(p.Most()), strings.Join(parts, ", "), most)
}

// plainRate writes a rate with at most two decimals.
func plainRate(v float64) string { return plain(math.Round(v*100) / 100) }

// peak is the most arrivals in a second.
func (l *Load) peak() float64 {
	rate := float64(l.Rate)
	if l.Recorded != nil {
		at := make([]float64, len(l.Recorded.Entries))
		for i, e := range l.Recorded.Entries {
			at[i] = e.At.D().Seconds() / max(l.Speed, minSpeed)
		}
		slices.Sort(at)
		return float64(mostWithin(at, 1) * max(l.Copies, 1))
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
		return float64(mostWithin(at, 1))
	}
	return rate
}

// mostWithin is how many of some times, in order, lie less than a length apart.
func mostWithin(at []float64, length float64) (most int) {
	first := 0
	for i := range at {
		for at[i]-at[first] >= length {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// Longest is the time that a run of the phases takes at most, without what comes before and after them.
func (s *Scenario) Longest() (all time.Duration) {
	for i := range s.Phases {
		all += max(s.Phases[i].For, s.Phases[i].Within).D()
	}
	return all
}

// Arrivals is how many requests a load sends at most, or watches it opens; false: that is not known before the run.
func (s *Scenario) Arrivals(l PlacedLoad) (int64, bool) {
	length := s.longest(l)
	switch {
	case l.OpensWatches():
		return int64(l.Count), true
	case l.Recorded != nil:
		return int64(len(l.Recorded.Entries) * max(l.Copies, 1)), true
	case l.Shape.Kind == "replay":
		return int64(len(l.Shape.Times)), true
	case l.kind().traced:
		return 0, false
	case l.kind().unpaced:
		return int64(float64(l.Rate) * length.Seconds()), true
	}
	p := s.pacer(l)
	if p == nil {
		return 0, false
	}
	n := p.Due(length - 1) // what is due at the end comes too late
	if b := l.Batch(); l.Kind == "objects" && b.Has() {
		if all, err := s.Expand(PlacedBatch{Batch: b, Name: l.Name, Path: l.Path}); err == nil {
			n = min(n, int64(all.Len()))
		}
	}
	return n, true
}

// Share is a part of a load's requests.
type Share struct {
	Verb, Resource string
	Part           float64 // of the load's, 0 to 1
	// Sent and Answered are rough bytes of the bodies of each; 0: not known.
	Sent, Answered float64
}

// Shares are what a load's requests ask, by verb and resource.
func (s *Scenario) Shares(l PlacedLoad) (all []Share) {
	add := func(o Share) {
		i := slices.IndexFunc(all, func(x Share) bool { return x.Verb == o.Verb && x.Resource == o.Resource })
		if i < 0 {
			all = append(all, o)
			return
		}
		x := &all[i]
		x.Sent = (x.Sent*x.Part + o.Sent*o.Part) / (x.Part + o.Part)
		x.Answered = (x.Answered*x.Part + o.Answered*o.Part) / (x.Part + o.Part)
		x.Part += o.Part
	}
	switch {
	case l.Recorded != nil:
		n := float64(len(l.Recorded.Entries))
		for _, e := range l.Recorded.Entries {
			shape := l.Recorded.Shapes[e.Shape]
			resource := shape.Resource
			if shape.Group != "" {
				resource += "." + shape.Group
			}
			add(Share{Verb: shape.Verb, Resource: withSub(resource, shape.Subresource), Part: 1 / n, Sent: float64(e.Size)})
		}
	case l.Kind == "changes":
		of := Share{Verb: "patch", Resource: "what its watches watch", Part: 1}
		for _, w := range s.Loads() {
			if w.Name == l.Watches {
				of.Resource, of.Sent, of.Answered = w.Resource, w.size(), w.size()
			}
		}
		return []Share{of}
	case l.Kind == "streams":
		return []Share{{Verb: "connect", Resource: withSub("pods", l.PodSubresource()), Part: 1}}
	case l.Kind == "custom":
		return []Share{{Verb: "call", Resource: "the program's own", Part: 1}}
	case l.Kind == "objects":
		expanded, err := s.Expand(PlacedBatch{Batch: l.Batch(), Name: l.Name, Path: l.Path})
		if err != nil {
			return nil
		}
		for _, k := range expanded.Kinds() {
			add(Share{Verb: "create", Resource: k.Kind, Part: float64(k.Count) / float64(max(expanded.Len(), 1))})
		}
	case l.OpensWatches():
		for _, o := range l.Operations() {
			add(Share{Verb: "watch", Resource: o.Resource, Part: 1, Answered: l.answer(o, "list")})
		}
	default:
		weights := 0.0
		for _, o := range l.Operations() {
			weights += max(o.Weight, 0)
		}
		for _, o := range l.Operations() {
			part := 1.0
			if weights > 0 {
				part = o.Weight / weights
			}
			of := Share{Verb: o.Verb, Resource: o.FullResource(), Part: part, Answered: l.answer(o, o.Verb)}
			switch o.Verb {
			case "create", "update", "patch", "apply":
				of.Sent = l.size()
			}
			add(of)
		}
	}
	return all
}

// answer is roughly how many bytes answer an operation of a verb, as far as the load's own objects go.
func (l *Load) answer(o Operation, verb string) float64 {
	switch {
	case strings.HasPrefix(o.Resource, "/"), verb == "delete":
		return 0
	case verb == "list" && o.Limit > 0 && !o.AllPages:
		return l.size() * float64(min(o.Limit, l.Objects))
	case verb == "list" && l.OwnObjects(o):
		return l.size() * float64(l.Objects) / float64(max(l.Namespaces, 1))
	case verb == "list":
		return 0
	}
	return l.size()
}

func withSub(resource, sub string) string {
	if sub == "" {
		return resource
	}
	return resource + "/" + sub
}

// Kept is how many bytes of payload the objects hold that loads make beforehand.
func (s *Scenario) Kept() (sum float64) {
	for _, l := range s.Loads() {
		sum += l.kept()
	}
	return sum
}
