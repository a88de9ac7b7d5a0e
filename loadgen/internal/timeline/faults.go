package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Fault is one fault, of the control plane or of simulated nodes.
type Fault struct {
	ID           string
	Kind, Detail string
	On           []string // components, by name; none of a fault of nodes
	Begin        time.Time
	End          *time.Time // nil: the timeline has none
}

// Over reports whether the fault had ended by a time.
func (f Fault) Over(at time.Time) bool { return f.End != nil && !f.End.After(at) }

// EndOr is when the fault ended, or last where the timeline has no end.
func (f Fault) EndOr(last time.Time) time.Time {
	if f.End == nil {
		return last
	}
	return *f.End
}

// Hits reports whether the fault is on a component.
func (f Fault) Hits(component string) bool { return slices.Contains(f.On, component) }

// nodesPrefix begins the IDs of faults of nodes, which have none of a plane.
const nodesPrefix = "nodes-"

func (f Fault) ofNodes() bool { return strings.HasPrefix(f.ID, nodesPrefix) }

// faults pairs begins with ends as their events come. Faults of simulated nodes last
// until the nodes recover.
type faults struct {
	all  []Fault
	open map[string]int // indices of those that have not ended, by ID
	// nodes counts the faults of nodes.
	nodes int
}

func (p *faults) add(e result.Event) {
	switch {
	case e.Kind == result.EventFaultBegin:
		p.begin(e.Fault, e)
	case e.Kind == result.EventFaultEnd:
		p.end(e.Fault, e.Time)
	case e.Kind == result.EventNodeFault && control.EndsNodeFaults(e.Name):
		for id, i := range p.open {
			if p.all[i].ofNodes() {
				p.end(id, e.Time)
			}
		}
	case e.Kind == result.EventNodeFault:
		p.nodes++
		p.begin(fmt.Sprintf("%s%d", nodesPrefix, p.nodes), e)
	}
}

func (p *faults) begin(id string, e result.Event) {
	if p.open == nil {
		p.open = map[string]int{}
	}
	p.open[id] = len(p.all)
	p.all = append(p.all, Fault{ID: id, Kind: e.Name, Detail: e.Detail, On: e.On, Begin: e.Time})
}

func (p *faults) end(id string, at time.Time) {
	if i, ok := p.open[id]; ok {
		p.all[i].End = &at
		delete(p.open, id)
	}
}

// about describes the fault's kind. One that is not known here counts as one for which
// the supervisor ends processes: then the fault accounts only for the exits that the
// supervisor marks as its own.
func (f Fault) about() control.FaultKind {
	kind, ok := control.FaultKindOf(f.Kind)
	if !ok {
		kind.Process, kind.Silences = control.ProcessEnded, true
	}
	return kind
}

// stops reports whether the supervisor ends processes for the fault.
func (f Fault) stops() bool { return f.about().Process == control.ProcessEnded }

// silences reports whether its components do not answer while the fault is in force.
func (f Fault) silences() bool { return f.about().Silences }

// silencesElected reports whether schedulers and controller managers may not answer
// while the fault is in force: they ask an API server who scrapes them.
func (f Fault) silencesElected() bool {
	return f.about().Isolates || f.silences() && (f.isOn(control.KindEtcd) || f.isOn(control.KindAPIServer))
}

// accountsFor reports whether a component may end by itself under the fault. marked: the
// supervisor marks the exits that it asked for; where it does not, all of the fault's
// own components are meant.
func (f Fault) accountsFor(x Exit, marked bool) bool {
	reachesEtcd := f.isOn(control.KindEtcd) || f.about().ReachesEtcd
	switch {
	case f.Hits(x.Component) && (!f.stops() || !marked):
		return true
	case isElected(x.Component):
		return reachesEtcd || f.isOn(control.KindAPIServer)
	case control.ComponentKind(x.Component) == control.KindAPIServer:
		return x.starting && reachesEtcd
	}
	return false
}

// isOn reports whether the fault is on a component of a kind.
func (f Fault) isOn(kind string) bool {
	return slices.ContainsFunc(f.On, func(name string) bool { return control.ComponentKind(name) == kind })
}

// isElected reports whether a component needs a lease to live.
func isElected(name string) bool {
	kind := control.ComponentKind(name)
	return kind == control.KindScheduler || kind == control.KindControllerManager
}
