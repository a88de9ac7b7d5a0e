// Package outage reads a run's timeline: when a fault of the scenario's kept a
// component from answering, and which ends of processes no fault accounts for. It
// is pure: the same timeline is read the same a year later.
package outage

import (
	"slices"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// before is how long before it is told a fault may have been felt: a process has
	// ended before its kill is reported.
	before = time.Second
	// beginning is how long before it is told to be in force a fault may have ended a
	// process: an etcdQuota restarts the members one after another.
	beginning = time.Minute
	// after is how long after its end scrapes may still be lost by it: one that was
	// begun while it lasted, and the time to catch up.
	after = 15 * time.Second
	// aftermath is how long after a fault, or after a start that it made necessary, an
	// exit is still its doing, as the supervisor has it (controlplane/consequence.go).
	aftermath = 30 * time.Second
)

// Outage is a time in which a fault of the scenario's kept a component away: its
// scrapes may be lost and its process be another. That is what the scenario asked
// for, and no reason to doubt what the others show.
type Outage struct {
	Component   string
	From, Until time.Time
	Fault       string // its kind
}

// Outages are those of a run, in no order.
type Outages []Outage

// Away is the kind of a fault that kept a component away at some time between two,
// both included, or "".
func (all Outages) Away(component string, from, until time.Time) (fault string) {
	for _, o := range all {
		if o.Component == component && !o.From.After(until) && !o.Until.Before(from) {
			return o.Fault
		}
	}
	return ""
}

// Read gives the outages that a timeline tells of, and the ends of processes that
// no fault accounts for, in the order of time.
//
// A component that a fault stops or ends is away from the fault's begin until it is
// ready again. Schedulers and controller managers go with the API servers, and with
// etcd: they show their metrics to whom the API server knows. One whose process has
// ended is away until the next is ready, if a fault accounts for the end:
//
//   - the supervisor ended it for the fault (kill, restart, etcdQuota, etcdRestore);
//   - the fault is on the component and leaves it running (pause, descriptorLimit, ...);
//   - it is a scheduler or controller manager, which end themselves without their
//     lease, and the fault is on etcd, an API server, the links between them or the disk;
//   - it is an API server that was started and not ready yet, which gives up without
//     etcd, and the fault is on etcd, the links or the disk;
//   - it was started again after such an end, less than half a minute before.
//
// An end that the supervisor asked for without a fault is in neither: a person has
// restored etcd, or stopped the plane.
func Read(timeline []result.Event) (away Outages, unexplained []result.Event) {
	r := reader{events: slices.Clone(timeline)}
	slices.SortStableFunc(r.events, func(a, b result.Event) int { return a.Time.Compare(b.Time) })
	r.faults = faultsOf(r.events)
	for _, f := range r.faults {
		away = append(away, r.kept(f)...)
	}
	ended, unexplained := r.exits()
	return append(away, ended...), unexplained
}

// reader reads one timeline.
type reader struct {
	events []result.Event // in the order of time
	faults []fault
}

// kept are the outages of those whom a fault keeps from answering all of its time.
func (r reader) kept(f fault) (all Outages) {
	if !f.about().Silences && !f.starves() {
		return nil
	}
	end := f.end
	for _, name := range f.on {
		back := r.back(name, f.begin, f.end)
		if back.After(end) {
			end = back
		}
		if f.about().Silences {
			all = append(all, Outage{name, f.begin.Add(-before), back.Add(after), f.kind})
		}
	}
	if !f.starves() {
		return all
	}
	for _, name := range r.elected() {
		all = append(all, Outage{name, f.begin.Add(-before), r.back(name, f.begin, end).Add(after), f.kind})
	}
	return all
}

// elected names the schedulers and controller managers that the timeline knows.
func (r reader) elected() (names []string) {
	for _, e := range r.events {
		if isElected(e.Name) && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}

// back is when a component that ended between from and until was ready again, or
// until.
func (r reader) back(name string, from, until time.Time) time.Time {
	back, down := until, false
	for _, e := range r.events {
		if e.Name != name || e.Time.Before(from.Add(-before)) {
			continue
		}
		switch {
		case e.Kind == control.EventExit && !e.Time.After(until.Add(after)):
			down = true
		case e.Kind == control.EventReady && down:
			down = false
			if e.Time.After(back) {
				back = e.Time
			}
		}
	}
	return back
}

// life is what is known of a component's process.
type life struct {
	started time.Time // zero for the first, which the run found ready
	ready   bool
	// revived is the fault that accounts for the end of the one before, if that ended
	// by itself.
	revived *fault
}

// exits sorts the ends of processes: those that a fault accounts for are outages.
func (r reader) exits() (away Outages, unexplained []result.Event) {
	lives := map[string]*life{}
	for _, e := range r.events {
		l := lives[e.Name]
		if l == nil {
			l = &life{}
			lives[e.Name] = l
		}
		switch e.Kind {
		case control.EventStart:
			l.started, l.ready = e.Time, false
		case control.EventReady:
			l.ready = true
		case control.EventExit:
			f := r.cause(e, l)
			switch {
			case f != nil:
				away = append(away, Outage{e.Name, e.Time.Add(-before), r.back(e.Name, e.Time, e.Time).Add(after), f.kind})
			case !e.Expected:
				unexplained = append(unexplained, e)
			}
			if l.revived = f; e.Expected {
				l.revived = nil
			}
		}
	}
	return away, unexplained
}

// cause is the fault that accounts for the end of a process, or nil: of several the
// one that began last.
func (r reader) cause(e result.Event, l *life) *fault {
	within := func(f fault, lead, wake time.Duration) bool {
		return !e.Time.Before(f.begin.Add(-lead)) && !e.Time.After(f.end.Add(wake))
	}
	if e.Expected {
		its := func(f fault, lead time.Duration) bool { return f.ends() && f.hits(e.Name) && within(f, lead, before) }
		for i, f := range slices.Backward(r.faults) {
			if its(f, before) {
				return &r.faults[i]
			}
		}
		for i, f := range r.faults { // the next to be in force
			if its(f, beginning) {
				return &r.faults[i]
			}
		}
		return nil
	}
	young := !l.started.IsZero() && !l.ready
	told := r.tellsWhoseDoing()
	for i, f := range slices.Backward(r.faults) {
		if within(f, before, aftermath) && f.explains(e.Name, young, told) {
			return &r.faults[i]
		}
	}
	if l.revived != nil && e.Time.Sub(l.started) < aftermath {
		return l.revived
	}
	return nil
}

// tellsWhoseDoing tells whether the supervisor has marked the ends that it asked for: an
// older one does not.
func (r reader) tellsWhoseDoing() bool {
	return slices.ContainsFunc(r.events, func(e result.Event) bool { return e.Expected })
}
