package recovery

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	etcd        = "etcd"
	leaseEvent  = "lease"
	leaderEvent = "etcd-leader"
	exitEvent   = "exit"
	readyEvent  = "ready"
	restarted   = "restart"
)

// number ends a component's name: kube-scheduler-1 is a kube-scheduler.
var number = regexp.MustCompile(`-\d+$`)

// holder is who leads, and since when.
type holder struct {
	name  string
	since time.Time
}

// handovers are the changes of who leads, and who did at the end, by what is
// led. The first holder of each is only learned of: nobody had it before.
func handovers(in Input, faults []fault) (all []result.Handover, held map[string]holder) {
	held = map[string]holder{}
	for _, e := range in.Timeline {
		if e.Kind != leaseEvent && e.Kind != leaderEvent {
			continue
		}
		of := number.ReplaceAllString(e.Name, "")
		if e.Kind == leaderEvent {
			of = etcd
		}
		before, known := held[of]
		held[of] = holder{e.Name, e.Time}
		if !known {
			continue
		}
		h := result.Handover{Of: of, From: before.name, To: e.Name, At: e.Time, Phase: phaseAt(in.Phases, e.Time)}
		lost, cause := hit(in.Timeline, faults, before.name, before.since, e.Time)
		if lost.IsZero() && before.name == e.Name {
			continue // told twice
		}
		if !lost.IsZero() {
			h.Lost, h.Failover, h.Fault = &lost, seconds(e.Time.Sub(lost)), idOf(cause)
		}
		all = append(all, h)
	}
	return all, held
}

// unled is what lost its last holder to a fault, by the fault's ID: the process
// ended before the run did, and nobody was seen to lead after it.
func unled(in Input, faults []fault, held map[string]holder) map[string][]string {
	lost := map[string][]string{}
	stop := lastEnd(in.Phases)
	for _, of := range slices.Sorted(maps.Keys(held)) {
		for _, e := range in.Timeline {
			if e.Kind != exitEvent || e.Name != held[of].name || !e.Time.After(held[of].since) || !stop.IsZero() && e.Time.After(stop) {
				continue
			}
			if cause := causeOf(faults, e.Name, e.Time, settled); cause != nil {
				lost[cause.id] = append(lost[cause.id], of)
			}
			break
		}
	}
	return lost
}

// lastEnd is when the last phase ended; zero where there is none.
func lastEnd(phases []result.Phase) time.Time {
	if len(phases) == 0 {
		return time.Time{}
	}
	return phases[len(phases)-1].End
}

// hit is when a holder was hit last between its getting the lease and its
// successor's: its process ended, or a fault on it began that was in force until
// shortly before. The fault is nil if its process ended by itself.
func hit(timeline []result.Event, faults []fault, holder string, since, until time.Time) (lost time.Time, cause *fault) {
	for i, f := range faults {
		if f.hits(holder) && !f.begin.Before(since) && f.begin.Before(until) && (f.end == nil || !f.end.Add(settling).Before(until)) {
			lost, cause = f.begin, &faults[i]
		}
	}
	for _, e := range timeline {
		if e.Kind == exitEvent && e.Name == holder && e.Time.After(since) && e.Time.Before(until) && !e.Time.Before(lost) {
			lost, cause = e.Time, causeOf(faults, holder, e.Time, settled)
		}
	}
	return lost, cause
}

// restarts pairs the ends of processes with the readiness of those that took
// their place. What ends after the last phase is the plane's own stop.
func restarts(in Input, faults []fault) []result.Restart {
	stop := lastEnd(in.Phases)
	var all []result.Restart
	open := map[string]int{} // index of the restart under way
	for _, e := range in.Timeline {
		at := e.Time
		switch e.Kind {
		case exitEvent:
			if !stop.IsZero() && at.After(stop) {
				continue
			}
			open[e.Name] = len(all)
			all = append(all, result.Restart{Component: e.Name, Exited: &at, Fault: idOf(causeOf(faults, e.Name, at, settled))})
		case readyEvent:
			if i, ok := open[e.Name]; ok {
				all[i].Ready, all[i].Down = &at, seconds(at.Sub(*all[i].Exited))
				delete(open, e.Name)
			}
		case restarted:
			all = append(all, result.Restart{Component: e.Name, Ready: &at, Fault: idOf(causeOf(faults, e.Name, at, settling))})
		}
	}
	return all
}
