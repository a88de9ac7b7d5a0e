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

// String is the kind of the fault and what it is on.
func (f Fault) String() string {
	if len(f.On) == 0 {
		return strings.TrimSpace(f.Kind + " " + f.Detail)
	}
	return f.Kind + " on " + strings.Join(f.On, ", ")
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
	return slices.Contains(control.ElectedKinds(), kind)
}

const (
	// quotaRestarts is how long before its begin a fault may have ended a process: an
	// etcdQuota restarts the members one after another before it is in force.
	quotaRestarts = time.Minute
	// catchUp is how long after an outage scrapes may still be lost by it: one that was
	// begun while it lasted, and the time to catch up.
	catchUp = 15 * time.Second
	// aftermath is the time after a fault, or after a start that it made necessary, in
	// which it still accounts for an exit, as for the supervisor
	// (controlplane/internal/supervisor/exits.go).
	aftermath = 30 * time.Second
)

// Outage is a time in which a fault, or a handover of its lease, kept a component away: its scrapes may be lost and
// its process be another.
type Outage struct {
	From, Until time.Time
	Fault       string // its kind, or handover
}

// handover stands for a fault where a component handed its lease over.
const handover = "handover of its lease"

// Outages are those of a run by component, in no order.
type Outages map[string][]Outage

// Fault is the kind of a fault that kept a component away at some time between two,
// both included, or "".
func (all Outages) Fault(component string, from, until time.Time) string {
	for _, o := range all[component] {
		if !o.From.After(until) && !o.Until.Before(from) {
			return o.Fault
		}
	}
	return ""
}

func (all Outages) add(component string, from, back time.Time, kind string) {
	all[component] = append(all[component], Outage{from.Add(-clockSkew), back.Add(catchUp), kind})
}

// Outages gives the outages of the run, and the exits that no fault accounts for, in
// the order of time.
//
// A component that a fault stops or ends is away from the fault's begin until it is
// ready again; schedulers and controller managers also while a fault is on the API
// servers or etcd, as they ask an API server who may scrape them. A process that ended is
// away until the next one is ready, if a fault accounts for the exit: the rules are in
// docs/reference/objectives.md, "Components under a fault". So is one that handed its lease
// over. An exit that the supervisor was asked for without a fault (a person restored etcd) is neither.
func (t *Timeline) Outages() (outages Outages, unexplained []Exit) {
	outages = Outages{}
	for i := range t.Faults {
		t.addSilences(outages, &t.Faults[i])
	}
	marked := slices.ContainsFunc(t.events, func(e result.Event) bool { return e.Expected })
	revived := map[string]*Fault{} // by component: what accounts for its last exit, if it ended by itself
	for _, x := range t.Exits {
		cause := t.cause(x, revived[x.Component], marked)
		switch {
		case cause != nil:
			outages.add(x.Component, x.Time, t.back(x.Component, x.Time, x.Time), cause.Kind)
		case x.Handover:
			outages.add(x.Component, x.Time, t.back(x.Component, x.Time, x.Time), handover)
		case !x.Expected:
			unexplained = append(unexplained, x)
		}
		if revived[x.Component] = cause; x.Expected {
			revived[x.Component] = nil
		}
	}
	return outages, unexplained
}

// addSilences adds the outages of components that a fault keeps from answering all of
// its time.
func (t *Timeline) addSilences(outages Outages, f *Fault) {
	if !f.silences() && !f.silencesElected() {
		return
	}
	end := t.end(f)
	last := end
	for _, name := range f.On {
		back := t.back(name, f.Begin, end)
		if back.After(last) {
			last = back
		}
		if f.silences() {
			outages.add(name, f.Begin, back, f.Kind)
		}
	}
	if f.silencesElected() {
		for _, name := range t.elected {
			outages.add(name, f.Begin, t.back(name, f.Begin, last), f.Kind)
		}
	}
}

// end of a fault; one without lasts until the last event.
func (t *Timeline) end(f *Fault) time.Time { return f.EndOr(t.events[len(t.events)-1].Time) }

// back is when a component that ended between two times was ready again, or until.
func (t *Timeline) back(component string, from, until time.Time) time.Time {
	n, exits := t.exitsUntil(component, func(at time.Time) bool { return at.After(until.Add(catchUp)) })
	if n == 0 {
		return until
	}
	n = min(n, t.processes[component].back)
	if n > 0 {
		if x := t.Exits[exits[n-1]]; !x.Time.Before(from.Add(-clockSkew)) && x.back.After(until) {
			return x.back
		}
	}
	return until
}

// cause is the fault that accounts for an exit, or nil: of several the one that began
// last. revived is the fault that accounts for the exit before, after which the process
// was started.
func (t *Timeline) cause(x Exit, revived *Fault, marked bool) *Fault {
	within := func(f *Fault, before, after time.Duration) bool {
		return !x.Time.Before(f.Begin.Add(-before)) && !x.Time.After(t.end(f).Add(after))
	}
	if x.Expected {
		its := func(f *Fault, before time.Duration) bool {
			return f.stops() && f.Hits(x.Component) && within(f, before, clockSkew)
		}
		for i := range slices.Backward(t.Faults) {
			if its(&t.Faults[i], clockSkew) {
				return &t.Faults[i]
			}
		}
		for i := range t.Faults { // the next to be in force
			if its(&t.Faults[i], quotaRestarts) {
				return &t.Faults[i]
			}
		}
		return nil
	}
	for i := range slices.Backward(t.Faults) {
		if f := &t.Faults[i]; within(f, clockSkew, aftermath) && f.accountsFor(x, marked) {
			return f
		}
	}
	if revived != nil && x.Time.Sub(x.started) < aftermath {
		return revived
	}
	return nil
}
