package outage

import (
	"slices"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
)

// fault is one fault of a control plane.
type fault struct {
	kind, id   string
	on         []string // components, by name
	begin, end time.Time
}

// faultsOf pairs begins with ends, in the order of the begins. A fault that was not
// seen to end lasts until the last event. The events are in order.
func faultsOf(events []result.Event) (all []fault) {
	for _, e := range events {
		switch e.Kind {
		case control.EventFaultBegin:
			all = append(all, fault{kind: e.Name, id: e.Fault, on: e.On, begin: e.Time, end: events[len(events)-1].Time})
		case control.EventFaultEnd:
			if i := slices.IndexFunc(all, func(f fault) bool { return f.id == e.Fault }); i >= 0 {
				all[i].end = e.Time
			}
		}
	}
	return all
}

func (f fault) hits(name string) bool { return slices.Contains(f.on, name) }

// about describes the fault's kind. One that is not known here counts as one for
// which the supervisor ends processes: then only what it says it asked for is the
// fault's.
func (f fault) about() control.FaultKind {
	kind, ok := control.FaultKindOf(f.kind)
	if !ok {
		kind.Process, kind.Silences = control.ProcessEnded, true
	}
	return kind
}

// starves tells whether schedulers and controller managers may not answer while
// the fault is in force: they ask an API server who it is that asks them.
func (f fault) starves() bool {
	kind := f.about()
	return kind.Isolates || kind.Silences && (f.isOn(control.KindEtcd) || f.isOn(control.KindAPIServer))
}

// ends tells whether the supervisor ends processes for the fault.
func (f fault) ends() bool { return f.about().Process == control.ProcessEnded }

// explains tells whether a component may end by itself under the fault. young: its
// process was started and not ready yet. told: the supervisor marks the ends
// that it asked for; where it does not, all of the fault's own components are meant.
func (f fault) explains(name string, young, told bool) bool {
	reachesEtcd := f.isOn(control.KindEtcd) || f.about().ReachesEtcd
	switch {
	case f.hits(name) && (!f.ends() || !told):
		return true
	case isElected(name):
		return reachesEtcd || f.isOn(control.KindAPIServer)
	case control.ComponentKind(name) == control.KindAPIServer:
		return young && reachesEtcd
	}
	return false
}

// isOn tells whether the fault is on a component of a kind.
func (f fault) isOn(kind string) bool {
	return slices.ContainsFunc(f.on, func(name string) bool { return control.ComponentKind(name) == kind })
}

// isElected tells whether a component needs a lease to live.
func isElected(name string) bool {
	kind := control.ComponentKind(name)
	return kind == control.KindScheduler || kind == control.KindControllerManager
}
