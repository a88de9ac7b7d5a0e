package recovery

import (
	"maps"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// handovers gives the changes of leaders, and the last leader of each kind. The first
// leader of a kind is no change: it is only learned of.
func (in run) handovers() (all []result.Handover, last map[string]timeline.Leader) {
	last = map[string]timeline.Leader{}
	for _, l := range in.line.Leaders {
		before, known := last[l.Of]
		last[l.Of] = l
		if !known {
			continue
		}
		h := result.Handover{Of: l.Of, From: before.Name, To: l.Name, At: l.Since, Phase: in.phaseAt(l.Since)}
		lost, cause := in.hit(before, l.Since)
		if lost.IsZero() && before.Name == l.Name {
			continue // told twice
		}
		if !lost.IsZero() {
			h.Lost, h.Failover, h.Fault = &lost, seconds(l.Since.Sub(lost)), idOf(cause)
		}
		all = append(all, h)
	}
	return all, last
}

// leaderless gives, by fault, the kinds whose last leader it ended before the run did.
func (in run) leaderless(last map[string]timeline.Leader) map[string][]string {
	lost := map[string][]string{}
	stop := in.lastEnd()
	for _, of := range slices.Sorted(maps.Keys(last)) {
		x := in.line.ExitAfter(last[of].Name, last[of].Since)
		if x == nil || !stop.IsZero() && x.Time.After(stop) {
			continue
		}
		if cause := in.line.FaultOn(x.Component, x.Time, settled); cause != nil {
			lost[cause.ID] = append(lost[cause.ID], of)
		}
	}
	return lost
}

func (in run) lastEnd() time.Time {
	if n := len(in.Measurements.Phases); n > 0 {
		return in.Measurements.Phases[n-1].End
	}
	return time.Time{}
}

// hit is when a leader was hit last before its successor's time: its process ended, or
// a fault on it began that was in force until shortly before. The fault is nil if its
// process ended by itself.
func (in run) hit(leader timeline.Leader, until time.Time) (lost time.Time, cause *timeline.Fault) {
	for i, f := range in.line.Faults {
		if f.Hits(leader.Name) && !f.Begin.Before(leader.Since) && f.Begin.Before(until) && (f.End == nil || !f.End.Add(settling).Before(until)) {
			lost, cause = f.Begin, &in.line.Faults[i]
		}
	}
	if x := in.line.ExitBetween(leader.Name, leader.Since, until); x != nil && !x.Time.Before(lost) {
		lost, cause = x.Time, in.line.FaultOn(x.Component, x.Time, settled)
	}
	return lost, cause
}

// restarts pairs the ends of processes with the readiness of those that took
// their place. What ends after the last phase is the plane's own stop.
func (in run) restarts() (all []result.Restart) {
	stop := in.lastEnd()
	for _, x := range in.line.Exits {
		if !stop.IsZero() && x.Time.After(stop) {
			continue
		}
		r := result.Restart{Component: x.Component, Exited: &x.Time, Fault: idOf(in.line.FaultOn(x.Component, x.Time, settled))}
		if !x.Ready.IsZero() {
			r.Ready, r.Down = &x.Ready, seconds(x.Ready.Sub(x.Time))
		}
		all = append(all, r)
	}
	return all
}

func idOf(f *timeline.Fault) string {
	if f == nil {
		return ""
	}
	return f.ID
}
