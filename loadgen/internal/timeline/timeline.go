// Package timeline handles the events of a run. It appends them to timeline.jsonl and reads them, exposes phases and
// faults as metrics, and derives faults, exits, outages and leaders from the events.
package timeline

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
)

// clockSkew is the maximum difference between the recorded times of two events that happen at the same time, such as
// a kill and the exit of the killed process.
const clockSkew = time.Second

// Timeline contains the faults, exits and leaders of a run.
type Timeline struct {
	Faults  []Fault  // in the order in which they began
	Exits   []Exit   // in chronological order
	Leaders []Leader // in chronological order

	events    []result.Event // in chronological order
	processes map[string]*process
	elected   []string // schedulers and controller managers, in the order of their first event
}

// Exit is the end of a component's process.
type Exit struct {
	Component string
	Time      time.Time
	Detail    string
	Expected  bool // whether the supervisor requested the exit
	Handover  bool // whether the component handed over its lease; the supervisor then restarts it
	// Ready is the time at which the next process was ready. It is zero if no process was ready before the next exit.
	Ready time.Time

	started  time.Time // start of the process that ended; zero for the first process, which was ready before the run began
	starting bool      // whether the process was not ready yet
	back     time.Time // time at which a later process first became ready; zero if none did
}

// Leader is an event: a component became the leader among the components of its kind.
type Leader struct {
	Of    string // the kind: etcd, kube-scheduler, ...
	Name  string // the component
	Since time.Time
}

// process is the state of a component while Of reads the events.
type process struct {
	exits   []int // indices in Timeline.Exits
	back    int   // number of exits before the last process that became ready
	started time.Time
	ready   bool
}

// Of builds a timeline from events, which may be in any order.
func Of(events []result.Event) *Timeline {
	t := &Timeline{events: slices.Clone(events), processes: map[string]*process{}}
	slices.SortStableFunc(t.events, func(a, b result.Event) int { return a.Time.Compare(b.Time) })
	var faults faults
	for _, e := range t.events {
		faults.add(e)
		t.follow(e)
	}
	t.Faults = faults.all
	return t
}

func (t *Timeline) follow(e result.Event) {
	p := t.processes[e.Name]
	if p == nil {
		p = &process{}
		t.processes[e.Name] = p
		if isElected(e.Name) {
			t.elected = append(t.elected, e.Name)
		}
	}
	switch e.Kind {
	case result.EventLease:
		t.Leaders = append(t.Leaders, Leader{control.ComponentKind(e.Name), e.Name, e.Time})
	case result.EventEtcdLeader:
		t.Leaders = append(t.Leaders, Leader{control.KindEtcd, e.Name, e.Time})
	case result.EventStart:
		p.started, p.ready = e.Time, false
	case result.EventReady:
		p.ready = true
		for i, x := range p.exits[p.back:] {
			t.Exits[x].back = e.Time
			if p.back+i == len(p.exits)-1 {
				t.Exits[x].Ready = e.Time
			}
		}
		p.back = len(p.exits)
	case result.EventExit:
		p.exits = append(p.exits, len(t.Exits))
		t.Exits = append(t.Exits, Exit{
			Component: e.Name, Time: e.Time, Detail: e.Detail, Expected: e.Expected, Handover: e.Handover,
			started: p.started, starting: !p.started.IsZero() && !p.ready,
		})
	}
}

// ExitBetween returns the last exit of a component in the open interval (after, before), or nil.
func (t *Timeline) ExitBetween(component string, after, before time.Time) *Exit {
	n, exits := t.exitsUntil(component, func(at time.Time) bool { return !at.Before(before) })
	if n == 0 || !t.Exits[exits[n-1]].Time.After(after) {
		return nil
	}
	return &t.Exits[exits[n-1]]
}

// ExitAfter returns the first exit of a component after a time, or nil.
func (t *Timeline) ExitAfter(component string, after time.Time) *Exit {
	n, exits := t.exitsUntil(component, func(at time.Time) bool { return at.After(after) })
	if n == len(exits) {
		return nil
	}
	return &t.Exits[exits[n]]
}

// exitsUntil returns the exits of a component, as indices in t.Exits. n is the number of exits before the first one for
// whose time `over` returns true.
func (t *Timeline) exitsUntil(component string, over func(time.Time) bool) (n int, exits []int) {
	if p := t.processes[component]; p != nil {
		exits = p.exits
	}
	return sort.Search(len(exits), func(i int) bool { return over(t.Exits[exits[i]].Time) }), exits
}

// FaultOn returns the latest of the faults on a component that were active at the time `at` or had ended at most
// `grace` before `at`. It returns nil if there is no such fault.
func (t *Timeline) FaultOn(component string, at time.Time, grace time.Duration) *Fault {
	for i, f := range slices.Backward(t.Faults) {
		if f.Hits(component) && !f.Begin.After(at.Add(clockSkew)) && (f.End == nil || !f.End.Add(grace).Before(at)) {
			return &t.Faults[i]
		}
	}
	return nil
}

// FaultsWithin returns the faults that began in the closed interval [from, until].
func (t *Timeline) FaultsWithin(from, until time.Time) []Fault {
	var all []Fault
	for _, f := range t.Faults {
		if !f.Begin.Before(from) && !f.Begin.After(until) {
			all = append(all, f)
		}
	}
	return all
}

// CheckPhases returns an error unless the timeline contains the start and the end of each measured phase exactly once,
// at the measured times. A timeline that lacks these events may also lack faults and exits.
func (t *Timeline) CheckPhases(phases []result.Phase) error {
	type bound struct {
		kind result.EventKind
		name string
	}
	times := map[bound][]time.Time{}
	for _, e := range t.events {
		times[bound{e.Kind, e.Name}] = append(times[bound{e.Kind, e.Name}], e.Time)
	}
	const clock = "2006-01-02T15:04:05.000"
	for _, p := range phases {
		for _, b := range []struct {
			kind result.EventKind
			what string
			at   time.Time
		}{{result.EventPhaseStart, "start", p.Start}, {result.EventPhaseEnd, "end", p.End}} {
			switch at := times[bound{b.kind, p.Name}]; {
			case len(at) == 0:
				return fmt.Errorf("the %s of phase %s is missing", b.what, p.Name)
			case len(at) > 1:
				return fmt.Errorf("the %s of phase %s appears %d times", b.what, p.Name, len(at))
			case !at[0].Equal(b.at):
				return fmt.Errorf("the %s of phase %s is at %s, but %s says %s", b.what, p.Name,
					at[0].UTC().Format(clock), result.MeasurementsFile, b.at.UTC().Format(clock))
			}
		}
	}
	return nil
}
