package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Fault is a fault of the control plane or of simulated nodes.
type Fault struct {
	ID           string
	Kind, Detail string
	On           []string // names of the faulty components; empty for a fault of nodes
	Begin        time.Time
	End          *time.Time // nil if the timeline does not contain the end
}

// String returns the kind of the fault and its components, or its detail if it has no components.
func (f Fault) String() string {
	if len(f.On) == 0 {
		return strings.TrimSpace(f.Kind + " " + f.Detail)
	}
	return f.Kind + " on " + strings.Join(f.On, ", ")
}

// Over reports whether the fault had ended at the time `at`.
func (f Fault) Over(at time.Time) bool { return f.End != nil && !f.End.After(at) }

// EndOr returns the end of the fault, or `last` if the timeline does not contain the end.
func (f Fault) EndOr(last time.Time) time.Time {
	if f.End == nil {
		return last
	}
	return *f.End
}

// Hits reports whether the fault affects the component directly.
func (f Fault) Hits(component string) bool { return slices.Contains(f.On, component) }

// nodesPrefix is the prefix of the IDs of faults of simulated nodes. The timeline assigns these IDs, because the
// control plane's supervisor does not know such faults.
const nodesPrefix = "nodes-"

func (f Fault) ofNodes() bool { return strings.HasPrefix(f.ID, nodesPrefix) }

// faults collects faults from the events that begin and end them. all is ordered by the start of the faults. A fault of
// simulated nodes lasts until the nodes recover.
type faults struct {
	all  []Fault
	open map[string]int // indexes of faults that have not ended, by ID
	// nodes is the number of faults of simulated nodes so far.
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

// about returns the properties of the fault's kind. For an unknown kind, it assumes that the supervisor ends processes.
// Such a fault explains an exit only if the supervisor marked the exit as requested.
func (f Fault) about() control.FaultKind {
	kind, ok := control.FaultKindOf(f.Kind)
	if !ok {
		kind.Process, kind.Silences = control.ProcessEnded, true
	}
	return kind
}

// stops reports whether the supervisor ends processes to cause the fault.
func (f Fault) stops() bool { return f.about().Process == control.ProcessEnded }

// silences reports whether the faulty components do not respond during the fault.
func (f Fault) silences() bool { return f.about().Silences }

// silencesElected reports whether scrapes of schedulers and controller managers may fail during the fault, because
// these components need an API server to authorize a scrape.
func (f Fault) silencesElected() bool {
	return f.about().Isolates || f.silences() && (f.isOn(control.KindEtcd) || f.isOn(control.KindAPIServer))
}

// accountsFor reports whether the fault explains an exit that the supervisor did not request. marked is true if the
// supervisor marks requested exits. If marked is true, a fault that ends processes does not explain unmarked exits of
// its components, because these have another cause.
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

func (f Fault) isOn(kind string) bool {
	return slices.ContainsFunc(f.On, func(name string) bool { return control.ComponentKind(name) == kind })
}

// isElected reports whether a component is of a kind that elects a leader. Such a component exits when it loses its
// lease.
func isElected(name string) bool {
	kind := control.ComponentKind(name)
	return slices.Contains(control.ElectedKinds(), kind)
}

const (
	// quotaRestarts is the time before the recorded start of a fault in which the fault may already have ended
	// processes. For a fault of kind etcdQuota, the supervisor restarts the etcd members one after another before the
	// fault takes effect.
	quotaRestarts = time.Minute
	// catchUp is the time after an outage in which scrapes may still fail: the component needs time to catch up, and a
	// scrape may have started during the outage.
	catchUp = 15 * time.Second
	// aftermath is the time after the end of a fault in which the fault still explains exits. A fault that led to the
	// start of a process also explains an exit of this process within aftermath after this start. The supervisor uses
	// the same time (controlplane/internal/supervisor/exits.go).
	aftermath = 30 * time.Second
)

// Outage is a time range in which a component was unavailable because of a fault or a handover of its lease. In this
// range, scrapes of the component may be missing, and its process may have been replaced.
type Outage struct {
	From, Until time.Time
	Fault       string // the fault's kind, or the constant handover
}

// handover is the value of Outage.Fault if the component was unavailable because it handed over its lease.
const handover = "handover of its lease"

// Outages contains the outages of a run by component. The outages of a component are in no particular order.
type Outages map[string][]Outage

// Fault returns the field Fault of an outage of the component that overlaps the closed interval [from, until]. It
// returns "" if there is no such outage.
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

// Outages returns the outages of the run, and the unexplained exits in chronological order.
//
// A component that a fault stops or ends is unavailable from the start of the fault until the component is ready again.
// Schedulers and controller managers are also unavailable while a fault affects the API servers or etcd, because they
// need an API server to authorize scrapes.
//
// After an exit, a component is unavailable until its next process is ready, if a fault explains the exit (see
// docs/reference/objectives.md, "Components under a fault") or the component handed over its lease. If the user made
// the supervisor end a process without a fault, for example to restore etcd, the exit counts neither as an outage nor
// as unexplained.
func (t *Timeline) Outages() (outages Outages, unexplained []Exit) {
	outages = Outages{}
	for i := range t.Faults {
		t.addSilences(outages, &t.Faults[i])
	}
	marked := slices.ContainsFunc(t.events, func(e result.Event) bool { return e.Expected })
	revived := map[string]*Fault{} // by component: the fault that explains its last exit; nil if the supervisor requested that exit
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

// addSilences adds an outage for each component that does not respond during the fault.
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

// end returns the end of a fault, or the time of the last event if the timeline does not contain the end.
func (t *Timeline) end(f *Fault) time.Time { return f.EndOr(t.events[len(t.events)-1].Time) }

// back returns the time at which a component that exited between from and until was ready again, but no time before
// `until`. It returns `until` if the component did not exit.
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

// cause returns the fault that explains an exit, or nil. If several faults explain it, cause returns the latest.
// revived is the fault that explains the component's previous exit, that is, the start of the process that exits now.
// For marked, see accountsFor.
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
		for i := range t.Faults { // a fault whose recorded start follows the exit
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
