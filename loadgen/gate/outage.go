package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/record"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// outageBefore is how long before it is told a fault may have been felt: a
	// process has ended before its kill is reported.
	outageBefore = time.Second
	// outageAfter is how long after its end scrapes may still be lost by it: one
	// that was begun while it lasted, and the time to catch up.
	outageAfter = 15 * time.Second
	// aftermath is how long after a fault an exit is still its doing, as the
	// supervisor has it (controlplane/consequence.go).
	aftermath = 30 * time.Second
)

// outage is a time in which a fault of the scenario's kept a component away: its
// scrapes may be lost and its process be another. That is what the scenario
// asked for, and no reason to doubt what the others show.
type outage struct {
	component   string
	from, until time.Time
	fault       string // its kind
}

// outages are those that the timeline tells of. A component that a fault hit is
// away from the fault's begin until it is ready again. Schedulers and controller
// managers go with the API servers and with etcd: they end themselves when they
// lose their lease, and their metrics are shown to whom the API server knows.
func outages(timeline []result.Event) []outage {
	var all []outage
	elected := map[string]bool{}
	for _, e := range timeline {
		if kind := control.ComponentKind(e.Name); kind == control.KindScheduler || kind == control.KindControllerManager {
			elected[e.Name] = true
		}
	}
	for _, e := range timeline {
		if e.Kind != control.EventFaultBegin || !stops(e.Name) {
			continue
		}
		until := endOf(e, timeline)
		away := slices.Clone(e.On)
		if slices.ContainsFunc(e.On, func(name string) bool {
			kind := control.ComponentKind(name)
			return kind == control.KindEtcd || kind == control.KindAPIServer
		}) {
			for name := range elected {
				away = append(away, name)
			}
		}
		for _, name := range away {
			o := outage{component: name, from: e.Time.Add(-outageBefore), until: readyAfter(name, e.Time, until, timeline).Add(outageAfter), fault: e.Name}
			all = append(all, o)
		}
	}
	return append(all, consequences(timeline)...)
}

// consequences are processes that ended by themselves under a fault of any kind,
// or soon after it: the supervisor starts them again, as the kubelet would.
func consequences(timeline []result.Event) []outage {
	var all []outage
	for _, f := range timeline {
		if f.Kind != control.EventFaultBegin {
			continue
		}
		until := endOf(f, timeline).Add(aftermath)
		for _, e := range timeline {
			if e.Kind == control.EventExit && !e.Time.Before(f.Time.Add(-outageBefore)) && !e.Time.After(until) {
				all = append(all, outage{
					component: e.Name, from: e.Time.Add(-outageBefore),
					until: readyAfter(e.Name, e.Time, e.Time, timeline).Add(outageAfter), fault: f.Name,
				})
			}
		}
	}
	return all
}

// stops tells whether a fault of this kind may end a component's process, or keep
// it from answering.
func stops(kind string) bool {
	switch kind {
	case control.FaultSlowFsync, control.FaultDiskContention, control.FaultWebhook:
		return false // all goes on, slower
	}
	return true
}

// endOf is when a fault ended; one that did not while the run was recorded, at
// the last event.
func endOf(begin result.Event, timeline []result.Event) time.Time {
	if begin.Name == control.FaultRestart {
		return begin.Time
	}
	last := begin.Time
	for _, e := range timeline {
		if e.Kind == control.EventFaultEnd && e.Fault == begin.Fault {
			return e.Time
		}
		if e.Time.After(last) {
			last = e.Time
		}
	}
	return last
}

// readyAfter is when a component that ended between from and until was ready
// again, or until.
func readyAfter(name string, from, until time.Time, timeline []result.Event) time.Time {
	exited := time.Time{}
	for _, e := range timeline {
		if e.Name != name || e.Time.Before(from.Add(-outageBefore)) {
			continue
		}
		switch {
		case e.Kind == control.EventExit && !e.Time.After(until.Add(outageAfter)):
			exited = e.Time
		case e.Kind == control.EventReady && !exited.IsZero() && e.Time.After(until):
			return e.Time
		}
	}
	return until
}

// away is the fault that kept a component away at some time between two, or "".
func away(all []outage, component string, from, until time.Time) string {
	for _, o := range all {
		if o.component == component && !o.from.After(until) && !o.until.Before(from) {
			return o.fault
		}
	}
	return ""
}

// lostScrapes counts the scrapes of each target that were lost for no fault of
// the scenario's. Without an archive nothing is known of when: all count.
func lostScrapes(ctx context.Context, a *record.Archive, all []outage, s result.Scrapes) (map[string]int64, error) {
	if a == nil || len(all) == 0 {
		return s.Failed, nil
	}
	lost := map[string]int64{}
	for instance, n := range s.Failed {
		first, last, err := a.Bounds(ctx)
		if err != nil {
			return s.Failed, ctx.Err()
		}
		up, err := a.Samples(ctx, first, last, match(model.MetricNameLabel, "up"), match("instance", instance))
		if err != nil {
			return s.Failed, err
		}
		excused := int64(0)
		for _, series := range up {
			for _, p := range series.Points {
				if p.V == 0 && away(all, instance, p.T, p.T) != "" {
					excused++
				}
			}
		}
		lost[instance] = max(0, n-excused)
	}
	return lost, nil
}

// awayNote says that a component was away for a part of what is judged.
func awayNote(instance, fault string) string {
	return fmt.Sprintf("%s was away for a time (%s)", instance, fault)
}

// withNotes adds notes to a detail.
func withNotes(detail string, notes []string) string {
	if len(notes) == 0 {
		return detail
	}
	return strings.TrimPrefix(detail+"; "+strings.Join(notes, "; "), "; ")
}
