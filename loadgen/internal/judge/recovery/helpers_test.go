package recovery

import (
	"math"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// sec returns the time s seconds after the start.
func sec(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }

// slotsOf returns slots of a load from its start, one for each letter: "." all requests succeed, "x" one fails, "m" one
// fails and one succeeds, "s" one takes 3 s, "u" one is unsent, "c" one is canceled. In a blank no request ends.
func slotsOf(load, letters string) []samples.Slot {
	var slots []samples.Slot
	for i, l := range letters {
		r := samples.RequestSlot{Succeeded: 1, Slowest: 0.01}
		switch l {
		case ' ':
			continue
		case 'x':
			r = samples.RequestSlot{Failed: map[string]int64{"503": 1}, Slowest: 0.02}
		case 'm':
			r.Failed = map[string]int64{"timeout": 1}
		case 's':
			r.Slowest = 3
		case 'u':
			r.Unsent = 1
		case 'c':
			r = samples.RequestSlot{Failed: map[string]int64{"canceled": 1}, Slowest: 9}
		}
		slots = append(slots, samples.Slot{
			Begin: start.UnixMilli() + int64(i)*100, Millis: 100,
			Requests: map[string]samples.RequestSlot{load: r},
		})
	}
	return slots
}

// faulty returns a timeline with a fault between two times in seconds.
func faulty(from, to float64, on ...string) []result.Event {
	return []result.Event{
		{Time: sec(from), Kind: "fault-begin", Name: "kill", Fault: "1", On: on},
		{Time: sec(to), Kind: "fault-end", Name: "kill", Fault: "1"},
	}
}

// killedScheduler returns a timeline in which the leading scheduler is killed and
// another one takes over.
func killedScheduler() []result.Event {
	return []result.Event{
		{Time: sec(0), Kind: "lease", Name: "kube-scheduler-1"},
		{Time: sec(1), Kind: "lease", Name: "kube-controller-manager-0"},
		{Time: sec(10), Kind: "fault-begin", Name: "kill", Fault: "1", On: []string{"kube-scheduler-1"}},
		{Time: sec(10.02), Kind: "exit", Name: "kube-scheduler-1"},
		{Time: sec(26), Kind: "lease", Name: "kube-scheduler-0"},
	}
}

// phase returns the measurements of a run with one phase.
func phase(name string, start, end time.Time) result.Measurements {
	return result.Measurements{Phases: []result.Phase{{Name: name, Start: start, End: end}}}
}

// seen returns the only load's recovery from the only fault.
func seen(t *testing.T, timeline []result.Event, slots []samples.Slot) result.LoadRecovery {
	t.Helper()
	r := Analyse(&rundir.Recorded{Timeline: timeline, Slots: slots})
	if r == nil || len(r.Faults) != 1 || len(r.Faults[0].Loads) != 1 {
		t.Fatalf("not one fault with one load: %+v", r)
	}
	return r.Faults[0].Loads[0]
}

// isSeconds compares a time in seconds with the expected one. If want is nil, got must be nil.
func isSeconds(t *testing.T, what string, got *float64, want any) {
	t.Helper()
	switch {
	case got == nil && want == nil:
	case got == nil || want == nil:
		t.Errorf("%s is %v, want %v", what, text(got), want)
	case math.Abs(*got-want.(float64)) > 1e-9:
		t.Errorf("%s is %v s, want %v s", what, *got, want)
	}
}

func text(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}
