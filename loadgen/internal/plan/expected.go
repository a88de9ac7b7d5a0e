package plan

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Certainty says how a number that is computed before a run relates to the number in the run.
type Certainty string

// The values of Certainty. A number is Exact if it does not depend on time.
const (
	Exact   Certainty = ""
	About   Certainty = "about"    // slightly more or less, because phases and loads may last slightly longer or shorter
	AtMost  Certainty = "at most"  // the number or less, because a phase may end early by its condition
	AtLeast Certainty = "at least" // the number or more, because controllers may replace objects
	Unknown Certainty = "not known"
)

// Or returns the certainty of a sum of two numbers, one with certainty c and one with certainty other.
func (c Certainty) Or(other Certainty) Certainty {
	switch {
	case c == Exact || c == other:
		return other
	case other == Exact:
		return c
	case c == Unknown || other == Unknown:
		return Unknown
	case c == About:
		return other
	case other == About:
		return c
	}
	return About
}

// Moment is the maximum time by which a load is shorter than its phase.
const Moment = 500 * time.Millisecond

// Ending returns the certainty of a number that depends on the length of the given phases.
func Ending(phases ...scenario.Phase) Certainty {
	if slices.ContainsFunc(phases, func(p scenario.Phase) bool { return !p.Until.IsZero() }) {
		return AtMost
	}
	return About
}

// LongestOf returns the maximum total duration of the phases.
func LongestOf(phases ...scenario.Phase) (all time.Duration) {
	for _, p := range phases {
		all += max(p.For, p.Within).D()
	}
	return all
}

// Arrivals returns the number of requests that a load sends or of watches that it opens, computed with the pacer and
// the seed of the run. It does not know the number for a replay; see package replay.
func (p *Plan) Arrivals(l Load) (int64, Certainty) {
	length, how, most, end := LongestOf(l.Phases...), Ending(l.Phases...), int64(math.MaxInt64), ""
	switch {
	case l.Kind == "replay":
		return 0, Unknown
	case l.Kind == "history":
		return int64(float64(l.Rate) * length.Seconds()), how
	case l.OpensWatches():
		most, end = int64(l.Count), "watchesOpen"
	case l.Kind == "objects":
		if l.expanded == nil {
			return 0, Unknown
		}
		most, end = int64(l.expanded.Len()), "objectsMade"
	case l.Shape.Kind == "replay":
		if most = int64(len(l.Shape.Times)); most == 0 { // the replay's file was not read
			return 0, Unknown
		}
	}
	pacer, err := arrival.NewShaped(l.Arrival, float64(l.Rate), l.Shape.Pace(), p.Seed)
	if err != nil {
		return 0, Unknown
	}
	n := pacer.Due(length - 1) // arrivals due at the very end are too late to be sent
	if n >= most && (end != "" && l.Phases[0].Until.Is(end) || how == About && pacer.Due(length-Moment) >= most) {
		how = Exact
	}
	return min(n, most), how
}

// Share is the part of a load's requests that have one verb and resource.
type Share struct {
	Verb, Resource string
	// Part is the number of these requests for each arrival of the load. The parts of a load add up to 1. The parts of
	// a history add up to more, because its arrivals can cause two requests.
	Part float64
	// Sent and Answered are the approximate sizes of the request and response bodies in bytes; 0 if unknown.
	Sent, Answered float64
}

// Shares returns the load's requests by verb and resource. For a replay it returns nothing; see package replay.
func (p *Plan) Shares(l Load) (all []Share) {
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
	case l.Kind == "replay":
	case l.Kind == "history":
		own := l.Operations()[0].Resource
		return []Share{{Verb: "update", Resource: own, Part: HistoryWrites}, {Verb: "get", Resource: own, Part: 1 - HistoryWrites*HistoryBlind}}
	case l.Kind == "changes":
		of := Share{Verb: "patch", Resource: "the watched resource", Part: 1}
		for _, w := range p.Loads {
			if w.Name == l.Watches {
				of.Resource, of.Sent, of.Answered = w.Resource, w.size(), w.size()
			}
		}
		return []Share{of}
	case l.Kind == "streams":
		return []Share{{Verb: "connect", Resource: "pods/" + l.PodSubresource(), Part: 1}}
	case l.Kind == "custom":
		return []Share{{Verb: "call", Resource: "the program's own", Part: 1}}
	case l.Kind == "objects":
		if l.expanded == nil {
			return nil
		}
		for _, k := range l.expanded.Kinds() {
			add(Share{Verb: "create", Resource: builtin.ResourceOf(k.APIVersion, k.Kind), Part: float64(k.Count) / float64(max(l.expanded.Len(), 1))})
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

// answer estimates the size of a response in bytes. It counts only objects that the load creates.
func (l Load) answer(o scenario.Operation, verb string) float64 {
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

// MaxHistory is the maximum number of operations in a history. One arrival can cause two operations: a read, and a
// write that depends on this read.
const MaxHistory = 100_000

// Probabilities for the operations of a history load. An arrival is a write with probability HistoryWrites, a
// consistent read with probability HistoryReads, otherwise a read that a cache may answer. A write first reads the
// object, unless it is blind.
const (
	HistoryWrites = 0.5
	HistoryReads  = 0.35
	HistoryBlind  = 0.25 // fraction of the writes that use the last version that the client knew, so that writers conflict
)

// LastRound is the minimum time between the start of a repeated action's last round and the end of the phase. The run
// does not start a round later than that.
const LastRound = 100 * time.Millisecond

// kept returns the total payload, in bytes, of the objects that a load creates before it starts.
func (l Load) kept() float64 {
	if l.Kind == "history" { // its objects are small
		return 0
	}
	made := map[string]bool{}
	for _, o := range l.Operations() {
		if l.OwnObjects(o) {
			made[o.Resource] = true
		}
	}
	return float64(len(made)) * float64(l.Objects) * l.size()
}

// size returns the mean payload of the load's objects, in bytes.
func (l Load) size() float64 {
	var size, weights float64
	for _, s := range l.Sizes {
		size, weights = size+float64(s.Size)*s.Weight, weights+s.Weight
	}
	if len(l.Sizes) == 0 {
		return float64(l.Size)
	}
	return size / max(weights, 1e-9)
}
