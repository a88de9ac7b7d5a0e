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
