package timeline

import (
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

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

// Outage is a time in which a fault kept a component away: its scrapes may be lost and
// its process be another.
type Outage struct {
	From, Until time.Time
	Fault       string // its kind
}

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

func (all Outages) add(component string, from, back time.Time, f *Fault) {
	all[component] = append(all[component], Outage{from.Add(-clockSkew), back.Add(catchUp), f.Kind})
}

// Outages gives the outages of the run, and the exits that no fault accounts for, in
// the order of time.
//
// A component that a fault stops or ends is away from the fault's begin until it is
// ready again; schedulers and controller managers also while a fault is on the API
// servers or etcd, as they ask an API server who may scrape them. A process that ended is
// away until the next one is ready, if a fault accounts for the exit: the rules are in
// docs/reference/objectives.md, "Components under a fault". An exit that the supervisor
// was asked for without a fault (a person restored etcd) is neither.
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
			outages.add(x.Component, x.Time, t.back(x.Component, x.Time, x.Time), cause)
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
			outages.add(name, f.Begin, back, f)
		}
	}
	if f.silencesElected() {
		for _, name := range t.elected {
			outages.add(name, f.Begin, t.back(name, f.Begin, last), f)
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
