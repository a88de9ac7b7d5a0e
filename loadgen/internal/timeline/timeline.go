// Package timeline owns the events of a run: it appends them to timeline.jsonl, reads
// them, exposes phases and faults as metrics, and pairs them to faults, exits, outages
// and leaders.
package timeline

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
)

// clockSkew is how far apart two sources may report one moment: a kill, and the end
// of the process that it kills.
const clockSkew = time.Second

// Timeline holds the spans and moments read from the events of a run.
type Timeline struct {
	Faults  []Fault  // in the order in which they began
	Exits   []Exit   // in the order of time
	Leaders []Leader // in the order of time

	events    []result.Event // in the order of time
	processes map[string]*process
	elected   []string // schedulers and controller managers, in the order of their first event
}

// Exit is the end of a component's process.
type Exit struct {
	Component string
	Time      time.Time
	Detail    string
	Expected  bool // the supervisor had asked for it
	Handover  bool // it handed its lease over, to be started again
	// Ready is when the process that took its place was ready. Zero: none was before
	// the next exit.
	Ready time.Time

	started  time.Time // of the process that ended; zero for the first, which the run found ready
	starting bool      // it was started and not ready yet
	back     time.Time // when any later process was ready; zero: none was
}

// Leader is a component that became the leader of its kind.
type Leader struct {
	Of    string // the kind: etcd, kube-scheduler, ...
	Name  string // the component
	Since time.Time
}

// process is a component's process as the events follow it.
type process struct {
	exits   []int // indices in Timeline.Exits
	back    int   // of exits, how many have been followed by a ready process
	started time.Time
	ready   bool
}

// Of reads events, which may be in any order.
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

// ExitBetween is the last exit of a component after one time and before another;
// nil: there was none.
func (t *Timeline) ExitBetween(component string, after, before time.Time) *Exit {
	n, exits := t.exitsUntil(component, func(at time.Time) bool { return !at.Before(before) })
	if n == 0 || !t.Exits[exits[n-1]].Time.After(after) {
		return nil
	}
	return &t.Exits[exits[n-1]]
}

// ExitAfter is the first exit of a component after a time; nil: there was none.
func (t *Timeline) ExitAfter(component string, after time.Time) *Exit {
	n, exits := t.exitsUntil(component, func(at time.Time) bool { return at.After(after) })
	if n == len(exits) {
		return nil
	}
	return &t.Exits[exits[n]]
}

// exitsUntil counts the exits of a component before the first that is over a bound.
func (t *Timeline) exitsUntil(component string, over func(time.Time) bool) (n int, exits []int) {
	if p := t.processes[component]; p != nil {
		exits = p.exits
	}
	return sort.Search(len(exits), func(i int) bool { return over(t.Exits[exits[i]].Time) }), exits
}

// FaultOn is the fault that was on a component at a time, the latest begun of
// several, with a grace after its end. Nil: none was.
func (t *Timeline) FaultOn(component string, at time.Time, grace time.Duration) *Fault {
	for i, f := range slices.Backward(t.Faults) {
		if f.Hits(component) && !f.Begin.After(at.Add(clockSkew)) && (f.End == nil || !f.End.Add(grace).Before(at)) {
			return &t.Faults[i]
		}
	}
	return nil
}

// FaultsWithin are the faults that began between two times, both included.
func (t *Timeline) FaultsWithin(from, until time.Time) []Fault {
	var all []Fault
	for _, f := range t.Faults {
		if !f.Begin.Before(from) && !f.Begin.After(until) {
			all = append(all, f)
		}
	}
	return all
}

// CheckPhases is an error unless the timeline has the start and the end of each
// measured phase once, at the time that was measured: a timeline that lacks them may
// lack faults and exits too.
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
				return fmt.Errorf("it does not tell the %s of phase %s", b.what, p.Name)
			case len(at) > 1:
				return fmt.Errorf("it tells the %s of phase %s %d times", b.what, p.Name, len(at))
			case !at[0].Equal(b.at):
				return fmt.Errorf("it tells the %s of phase %s at %s, and %s at %s", b.what, p.Name,
					at[0].UTC().Format(clock), result.MeasurementsFile, b.at.UTC().Format(clock))
			}
		}
	}
	return nil
}
