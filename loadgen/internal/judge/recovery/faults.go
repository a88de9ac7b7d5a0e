package recovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
)

// fault is one fault of the timeline.
type fault struct {
	id, kind, detail string
	on               []string
	begin            time.Time
	end              *time.Time // nil: it was not seen to end
}

// over is when the fault ended, or never.
func (f fault) over(at time.Time) bool { return f.end != nil && !f.end.After(at) }

// hits tells whether the fault is on a component.
func (f fault) hits(component string) bool { return slices.Contains(f.on, component) }

// The event kinds read here.
const (
	faultBegin = "fault-begin"
	faultEnd   = "fault-end"
	nodeFault  = "fault"
)

// faultsOf pairs begins with ends, in the order of the begins. Faults of
// simulated nodes last until the nodes recover. The timeline is in order.
func faultsOf(timeline []result.Event) []fault {
	var all []fault
	ends := func(e result.Event, of func(fault) bool) {
		for i := range all {
			if all[i].end == nil && of(all[i]) {
				at := e.Time
				all[i].end = &at
			}
		}
	}
	nodes := 0
	for _, e := range timeline {
		switch {
		case e.Kind == faultBegin:
			all = append(all, fault{id: e.Fault, kind: e.Name, detail: e.Detail, on: e.On, begin: e.Time})
		case e.Kind == faultEnd:
			ends(e, func(f fault) bool { return f.id == e.Fault && f.kind == e.Name })
		case e.Kind == nodeFault && control.EndsNodeFaults(e.Name):
			ends(e, fault.ofNodes)
		case e.Kind == nodeFault:
			nodes++
			all = append(all, fault{id: fmt.Sprintf("%s%d", nodesPrefix, nodes), kind: e.Name, detail: e.Detail, on: e.On, begin: e.Time})
		}
	}
	slices.SortStableFunc(all, func(x, y fault) int { return x.begin.Compare(y.begin) })
	return all
}

// nodesPrefix begins the IDs of faults of nodes, which have none of a plane.
const nodesPrefix = "nodes-"

func (f fault) ofNodes() bool { return strings.HasPrefix(f.id, nodesPrefix) }

// reachOf is when fault i stops to answer for what happens: when the next one
// begins. Zero: never.
func reachOf(faults []fault, i int) time.Time {
	if i+1 < len(faults) {
		return faults[i+1].begin
	}
	return time.Time{}
}

// within tells whether a slot that ends at a time belongs to the fault.
func (f fault) within(reach, until time.Time) bool {
	return until.After(f.begin) && (reach.IsZero() || !until.After(reach))
}

// settled is how far the clocks of what is told of one moment by two sources
// may be apart: a kill, and the end of the process.
const settled = time.Second

// causeOf is the fault that was on a component at a time, the latest begun of
// several, with a grace after its end. Nil: none.
func causeOf(faults []fault, component string, at time.Time, grace time.Duration) *fault {
	for i, f := range slices.Backward(faults) {
		if f.hits(component) && !f.begin.After(at.Add(settled)) && (f.end == nil || !f.end.Add(grace).Before(at)) {
			return &faults[i]
		}
	}
	return nil
}

// id of a fault that may be none.
func idOf(f *fault) string { return cmp.Or(f, &fault{}).id }
