// Package recovery computes the effects of the faults of a run from its timeline and samples: error windows, first
// successes, relists, changes of leader and restarts. It also measures how much the signals of the scenario changed,
// compared with their noise. docs/reference/recovery.md defines every result.
package recovery

import (
	"maps"
	"slices"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// defaultBound is the SLO of Kubernetes for calls on single objects (1 s, in kubernetes/community
	// sig-scalability/slos/api_call_latency.md). The SLO is for the 99th percentile over days; here the bound applies
	// to every request.
	defaultBound = time.Second
	// listBound is the SLO of Kubernetes for lists of a namespace or of the cluster (30 s, in the same document).
	listBound = 30 * time.Second
	// stretch is how long a load must stay within its bound to count as recovered.
	stretch = 5 * time.Second
	// stormWithin is how long after a fault's end relists count as its effect: client-go's reflectors wait up to 30 s
	// before they try again (client-go/tools/cache/reflector.go, defaultBackoffMax).
	stormWithin = 30 * time.Second
	// settling is how long after a fault's end a change of leader counts as its effect. By default, Kubernetes leases
	// last 15 s and are retried every 2 s (component-base/config/options/leaderelectionconfig.go), so a later change
	// has another cause.
	settling = 30 * time.Second
	// settled is how long after a fault's end the exit of a process counts as its effect. It is not 0, because the
	// times of the two events come from different sources.
	settled = time.Second
)

type run struct {
	*rundir.Recorded
	line *timeline.Timeline
	// bound returns the latency bound of a load's requests.
	bound func(load string) time.Duration
}

// Analyse returns the effects of the faults of a run, or nil if there were no faults, no
// changes of leader and no restarts.
func Analyse(rec *rundir.Recorded) *result.Recovery {
	in := run{rec, timeline.Of(rec.Timeline), bounds(rec.Scenario)}
	changes, leaders := in.handovers()
	leaderless := in.leaderless(leaders)
	r := &result.Recovery{
		SlotSeconds: samples.Width.Seconds(), StretchSeconds: stretch.Seconds(),
		Handovers: changes, Restarts: in.restarts(),
	}
	if len(in.line.Faults)+len(r.Handovers)+len(r.Restarts) == 0 {
		return nil
	}
	for i, fault := range in.line.Faults {
		f := span{Fault: fault}
		if i+1 < len(in.line.Faults) {
			f.next = in.line.Faults[i+1].Begin
		}
		out := result.FaultRecovery{
			ID: f.ID, Kind: f.Kind, On: f.On, Detail: f.Detail, Phase: in.phaseAt(f.Begin),
			Begin: f.Begin, End: f.End,
			Loads: in.loads(f), Relists: relists(in.Slots, f), Leaderless: leaderless[f.ID],
		}
		for _, h := range r.Handovers {
			if h.Fault != f.ID || h.Failover == nil {
				continue
			}
			longest := &out.LeaseFailover
			if h.Of == control.KindEtcd {
				longest = &out.LeaderFailover
			}
			if *longest == nil || **longest < *h.Failover {
				*longest = h.Failover
			}
		}
		r.Faults = append(r.Faults, out)
	}
	if len(in.Slots) == 0 && len(in.line.Faults) > 0 {
		r.Missing = append(r.Missing, "the run has no samples: the effect of the faults on its loads is unknown")
	}
	return r
}

// bounds returns a function that returns the latency bound of a load: listBound if the load
// only lists, otherwise defaultBound.
func bounds(s *scenario.Scenario) func(load string) time.Duration {
	lists := map[string]bool{}
	if s != nil {
		for _, l := range s.Loads() {
			asks := l.Mix
			if len(asks) == 0 {
				asks = []scenario.Operation{l.Operation}
			}
			lists[l.Name] = !slices.ContainsFunc(asks, func(o scenario.Operation) bool { return o.Verb != "list" })
		}
	}
	return func(load string) time.Duration {
		if lists[load] {
			return listBound
		}
		return defaultBound
	}
}

// span is a fault with the time in which effects are attributed to it.
type span struct {
	timeline.Fault
	next time.Time // start of the next fault, which ends this span; zero for the last fault
}

// has reports whether a time slot of the samples belongs to the fault. until is the end of the slot.
func (f span) has(until time.Time) bool {
	return until.After(f.Begin) && (f.next.IsZero() || !until.After(f.next))
}

// phaseAt returns the name of the phase at a time, or "" outside of all phases. The
// boundary of two phases belongs to the later one.
func (in run) phaseAt(at time.Time) string {
	for _, p := range slices.Backward(in.Measurements.Phases) {
		if !at.Before(p.Start) && !at.After(p.End) {
			return p.Name
		}
	}
	return ""
}

func seconds(d time.Duration) *float64 { return new(d.Seconds()) }

// handovers returns the changes of leader, and the last leader of each kind of component. The first leader of a kind
// does not count as a change.
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
			continue // the same leader was reported twice
		}
		if !lost.IsZero() {
			h.Lost, h.Failover, h.Fault = &lost, seconds(l.Since.Sub(lost)), idOf(cause)
		}
		all = append(all, h)
	}
	return all, last
}

// leaderless returns, for each fault, the kinds of component whose leader exited because of
// the fault and was not replaced before the end of the run.
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

// hit returns the last time before `until` at which the process of a leader exited, or a fault on that process began.
// It ignores faults that ended more than the time `settling` before `until`. cause is the fault, or nil if the process
// exited without one. `lost` is zero if there was neither a fault nor an exit.
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

// restarts returns, for each process that exited, the time of the exit and the time at which its successor was ready.
// It skips exits after the last phase, because the run then stops the control plane.
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
