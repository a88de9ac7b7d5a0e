package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// work holds what the generator observed of a load's or an action's requests.
type work struct {
	// missing is the number of due requests that were not done in time. The other numbers are possible reasons: failed
	// requests (errors), overdue responses (backlog), requests that were not sent (unsent) or that the generator itself
	// sent late (late).
	missing, errors, backlog, unsent, late float64
	// all is the total time of the requests in seconds. slow is a lower bound of the total time of the requests slower
	// than slowAnswer.
	all, slow float64
	p50       float64
	outcomes  map[string]int64
	full      string // name of the limit on requests in flight if it was in use, or ""
	cut       string // describes the progress of the work at the end of the phase; "" if the work had finished
	queues    bool   // whether arrivals wait when the limit is reached; otherwise they are not sent
	load      bool   // whether the work belongs to a load, not to an action
}

// add adds a distribution of service times. The p50 of w is the largest p50 of all added distributions.
func (w *work) add(l result.Latency) {
	w.all += l.Mean * float64(l.Count)
	w.slow += slowSeconds(l)
	w.p50 = max(w.p50, l.P50)
}

// slowSeconds computes, from quantiles, a lower bound of the total time, in seconds, of the requests slower than
// slowAnswer.
func slowSeconds(l result.Latency) float64 {
	n := float64(l.Count)
	at := [...]struct{ q, v float64 }{{0.5, l.P50}, {0.9, l.P90}, {0.95, l.P95}, {0.99, l.P99}, {0.999, l.P999}, {1, l.Max}}
	sum := 0.0
	for i, x := range at {
		next := 1.0
		if i+1 < len(at) {
			next = at[i+1].q
		}
		switch {
		case x.v <= slowAnswer || n == 0:
		case x.q == 1:
			sum += x.v // one request
		default:
			sum += max((next-x.q)*n-1, 0) * x.v
		}
	}
	return sum
}

// isSlow reports whether the cluster answered slowly: the median is over slowAnswer, or requests slower than slowAnswer
// took at least half of the total time.
func (w work) isSlow() bool { return w.p50 > slowAnswer || w.all > 0 && 2*w.slow >= w.all }

// limit returns the factor that kept the work below its minimum share `least`, and an explanation. It applies the rule
// in docs/reference/objectives.md. `during` is the time that the work took, and `late` is how much longer that was than
// demanded, both in seconds. The factor is the generator if the work would have reached the share without the
// generator's own delay.
func (w work) limit(p result.Phase, least, during, late float64) (limit, why string) {
	half := w.missing / 2
	stalled := p.StalledSeconds * during / max(p.Seconds(), during)
	asked := w.missing * during / late
	switch {
	case w.refused() >= half && w.refused() > 0: // a delay of the generator causes no refusals
		return result.LimitCluster, strings.TrimPrefix(w.rest(), "; ")
	case len(p.Saturated) > 0:
		return result.LimitGenerator, "it was saturated (see the reasons of the run)"
	case w.late > 0 && w.missing-w.late <= (1-least)*asked:
		return result.LimitGenerator, fmt.Sprintf("it started %.0f requests too late", w.late)
	case stalled > 0 && late-stalled <= (1-least)*during:
		return result.LimitGenerator, fmt.Sprintf("it was stopped, or at least 10 ms late, for %s in total", show(scenario.Seconds, p.StalledSeconds))
	case w.isSlow():
		why = w.took()
		if w.full != "" && (w.unsent > 0 || w.queues) {
			why += ", so " + w.full + " was full"
		}
		return slowedBy(p), why + w.rest() + slowedOn(p)
	case w.errors >= half && w.errors > 0:
		return result.LimitCluster, strings.TrimPrefix(w.rest(), "; ")
	case w.errors+w.backlog >= half && w.errors+w.backlog > 0:
		return slowedBy(p), strings.TrimPrefix(w.rest()+slowedOn(p), "; ")
	case w.cut != "":
		return result.LimitAsked, w.cut
	case w.load && w.full == "":
		return result.LimitAsked, w.took() + ": not enough objects existed for the requests to work on" + w.rest()
	case w.full != "":
		return result.LimitAsked, strings.TrimPrefix(fmt.Sprintf("%s: %s is too low for this rate%s", w.took(), w.full, w.rest()), ": ")
	}
	return result.LimitAsked, w.took() + ": each round of requests takes longer than the interval between two rounds"
}

// slowedBy returns the factor to blame in a phase with slow responses: the machine if other programs kept it busy,
// otherwise the cluster.
func slowedBy(p result.Phase) string {
	if busyIn(p) != "" {
		return result.LimitMachine
	}
	return result.LimitCluster
}

// slowedOn returns a note that a phase was measured on a busy machine, or "" if the machine was not busy.
func slowedOn(p result.Phase) string {
	if busy := busyIn(p); busy != "" {
		return "; " + onBusyMachine + busy
	}
	return ""
}

// took describes how long requests took, or returns "" if their time was not measured.
func (w work) took() string {
	if w.p50 == 0 && w.all == 0 {
		return ""
	}
	if w.p50 <= slowAnswer && w.isSlow() {
		return fmt.Sprintf("requests slower than %s took most of the time (p50 %s)", show(scenario.Seconds, slowAnswer), show(scenario.Seconds, w.p50))
	}
	return fmt.Sprintf("requests took %s (p50)", show(scenario.Seconds, w.p50))
}

// rest describes the requests that were not sent, failed or got no response.
func (w work) rest() (text string) {
	if w.unsent > 0 {
		text += fmt.Sprintf("; %.0f requests were not sent", w.unsent)
	}
	if w.errors > 0 {
		text += fmt.Sprintf("; %.0f requests failed%s", w.errors, w.worst())
	}
	if w.backlog > 0 {
		text += fmt.Sprintf("; %.0f requests still had no response at the end of the load", w.backlog)
	}
	return text
}

// refused returns the number of requests that were answered with an error status.
func (w work) refused() (n float64) {
	for code, count := range w.outcomes {
		if len(code) == 3 && code[0] >= '4' && code[0] <= '5' {
			n += float64(count)
		}
	}
	return min(n, w.errors)
}

// worst names the most frequent outcome of failed requests, as the end of a sentence. It returns "" if no outcome is
// known.
func (w work) worst() string {
	most, of := int64(0), ""
	for _, code := range slices.Sorted(maps.Keys(w.outcomes)) {
		if n := w.outcomes[code]; n > most && !succeeded(code) {
			most, of = n, code
		}
	}
	if of == "" {
		return ""
	}
	return ", most with " + of
}

func succeeded(outcome string) bool { return len(outcome) == 3 && outcome[0] == '2' }
