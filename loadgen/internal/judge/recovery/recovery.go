// Package recovery computes the effects of a run's faults from its timeline and samples:
// error windows, first successes, relists, handovers, restarts; and judges the scenario's
// signals against their own noise. docs/reference/recovery.md defines every figure.
package recovery

import (
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
	// defaultBound is upstream's objective for calls on single objects (1 s, in
	// kubernetes/community sig-scalability/slos/api_call_latency.md). That one is
	// of the 99th percentile over days; here every request has to hold it.
	defaultBound = time.Second
	// listBound is upstream's for lists of a namespace or of the cluster (30 s, the
	// same document).
	listBound = 30 * time.Second
	// stretch is how long a load has to hold its bound to be back inside it.
	stretch = 5 * time.Second
	// stormWithin is how long after a fault's end relists are still its own:
	// client-go's reflectors wait up to 30 s before they try again
	// (client-go/tools/cache/reflector.go, defaultBackoffMax).
	stormWithin = 30 * time.Second
	// settling is how long after a fault's end a change of leader is still put
	// down to it: leases of 15 s and a retry every 2 s, upstream's defaults
	// (component-base/config/options/leaderelectionconfig.go), leave room for one
	// more of each.
	settling = 30 * time.Second
	// settled is how long after a fault's end the end of a process is still put down
	// to it: two sources tell of the two.
	settled = time.Second
)

// run is the recorded run that is analysed.
type run struct {
	*rundir.Recorded
	line *timeline.Timeline
	// bound of each request of a load.
	bound func(load string) time.Duration
}

// Analyse returns the faults' effects. Nil: there was no fault, no change of
// leader and no restart.
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
		r.Missing = append(r.Missing, "the run has no samples: what its loads saw of the faults is not known")
	}
	return r
}

// bounds gives the bound of each load: the one for lists where it does nothing but
// list, else the one for single objects.
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

// span is a fault with the time that it answers for.
type span struct {
	timeline.Fault
	next time.Time // when the next fault begins, which answers from then on; zero: none does
}

// has reports whether a slot that ends at a time belongs to the fault.
func (f span) has(until time.Time) bool {
	return until.After(f.Begin) && (f.next.IsZero() || !until.After(f.next))
}

// phaseAt names the phase that a moment is in; that between two belongs to
// the later one. Empty: none.
func (in run) phaseAt(at time.Time) string {
	for _, p := range slices.Backward(in.Measurements.Phases) {
		if !at.Before(p.Start) && !at.After(p.End) {
			return p.Name
		}
	}
	return ""
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
