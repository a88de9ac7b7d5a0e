package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// stage is a supervisor that fulfils every request and logs its time.
type stage struct {
	refuse map[string]error // errors of Check and Begin, by kind
	takes  time.Duration    // time from the request of a fault until it is active

	mu     sync.Mutex
	start  time.Time
	faults []control.FaultStatus
	log    []string
	events []control.Event
	news   chan struct{}
}

func newStage() *stage { return &stage{start: time.Now(), news: make(chan struct{}, 100)} }

func (s *stage) Check(_ context.Context, f control.Fault) error { return s.refuse[f.Kind] }

func (s *stage) Begin(ctx context.Context, f control.Fault) (control.FaultStatus, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return control.FaultStatus{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse[f.Kind]; err != nil {
		return control.FaultStatus{}, err
	}
	st := control.FaultStatus{ID: fmt.Sprint(len(s.faults) + 1), Fault: f, On: f.Components, Active: time.Now()}
	if f.For > 0 {
		st.Ends = st.Active.Add(f.For)
	}
	s.faults = append(s.faults, st)
	s.log = append(s.log, fmt.Sprintf("%s begin %s", time.Since(s.start), f.Kind))
	s.tell(control.EventFaultBegin, "")
	return st, nil
}

func (s *stage) Clear(_ context.Context, id string) (control.FaultStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.faults {
		if f := &s.faults[i]; f.ID == id {
			if !f.Ends.IsZero() && !time.Now().Before(f.Ends) || f.Kind == control.FaultRestart {
				f.Ended = f.Ends
				return *f, nil // the fault ended by itself
			}
			f.Ended = time.Now()
			s.log = append(s.log, fmt.Sprintf("%s clear %s", time.Since(s.start), f.Kind))
			s.tell(control.EventFaultEnd, "")
			return *f, nil
		}
	}
	return control.FaultStatus{}, errors.New("no such fault")
}

func (s *stage) Faults(context.Context) ([]control.FaultStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.faults), nil
}

// tell appends an event. The caller holds the lock.
func (s *stage) tell(kind, component string) {
	s.events = append(s.events, control.Event{Seq: int64(len(s.events) + 1), Time: time.Now(), Kind: kind, Component: component, Expected: kind == control.EventExit})
	s.news <- struct{}{}
}

func (s *stage) Events(ctx context.Context, after int64) ([]control.Event, error) {
	for {
		s.mu.Lock()
		if int(after) < len(s.events) {
			defer s.mu.Unlock()
			return slices.Clone(s.events[after:]), nil
		}
		s.mu.Unlock()
		select {
		case <-s.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Faults begin at their times. Faults without a duration end with the phase, and no fault outlasts the phase.
func TestFaultsBeginAndEndAtTheirTimes(t *testing.T) {
	r := underway(t, parse(t, `controlPlane: {etcd: {members: 3}}
phases:
  - name: p
    for: 1m
    faults:
      - {kind: slowFsync, component: etcd-1, delay: 25ms, after: 10s}
      - {kind: kill, component: etcd-leader, after: 5s, for: 2s, repeat: 3, every: 20s}
      - {kind: restart, component: etcd-0, after: 50s}
`))
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		r.phases.supervisor = s
		if _, err := r.phases.through(t.Context(), &r.o.Scenario.Phases[0], time.Now()); err != nil {
			t.Fatal(err)
		}
		want := []string{"5s begin kill", "10s begin slowFsync", "25s begin kill", "45s begin kill", "50s begin restart", "1m0s clear slowFsync"}
		if !slices.Equal(s.log, want) {
			t.Errorf("%q, want %q", s.log, want)
		}
		if len(r.phases.missed) > 0 {
			t.Errorf("missed %q", r.phases.missed)
		}
	})
}

// If a phase ends because its condition holds, its faults end too.
func TestFaultsEndWithShortenedPhase(t *testing.T) {
	r := underway(t, parse(t, "phases: [{name: p, until: watchesOpen, within: 1m, load: [{kind: watches, count: 1, rate: 1/s}], faults: [{kind: pause, component: etcd-0, for: 30s}]}]"))
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		r.phases.supervisor = s
		ctx, fail := context.WithCancelCause(t.Context())
		faults := r.phases.startFaults(ctx, &r.o.Scenario.Phases[0], time.Now(), fail)
		time.Sleep(5 * time.Second) // the condition holds
		if err := faults.end(ctx); err != nil {
			t.Fatal(err)
		}
		if want := []string{"0s begin pause", "5s clear pause"}; !slices.Equal(s.log, want) {
			t.Errorf("%q, want %q", s.log, want)
		}
		fail(nil)
	})
}

// If a fault is still beginning when its phase ends, the run waits for it and then clears it by its ID, so that it does
// not take effect in the next phase. An interrupted run does not wait.
func TestBeginningFaultDoesNotOutlivePhase(t *testing.T) {
	r := underway(t, parse(t, "phases: [{name: p, for: 10s, faults: [{kind: etcdQuota, quota: 16MiB, after: 9s}]}]"))
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.takes = 3 * time.Second
		r.phases.supervisor = s
		if _, err := r.phases.through(t.Context(), &r.o.Scenario.Phases[0], time.Now()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"12s begin etcdQuota", "12s clear etcdQuota"}; !slices.Equal(s.log, want) {
			t.Errorf("%q, want %q", s.log, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 9500*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := r.phases.through(ctx, &r.o.Scenario.Phases[0], began); err == nil {
			t.Error("the interrupt caused no error")
		}
		if took := time.Since(began); took != 9500*time.Millisecond || len(s.faults) != 1 {
			t.Errorf("the interrupted phase took %s, want 9.5s; %d faults began", took, len(s.faults))
		}
	})
}

// A fault that cannot begin ends the phase and the run. A fault that never began, because its phase was too short, is
// recorded as missed, so that no gate passes as if the fault had been active.
func TestUnbegunFaultsAreReported(t *testing.T) {
	r := underway(t, parse(t, "phases: [{name: p, for: 1h, faults: [{kind: pause, component: etcd-0, after: 3s}, {kind: kill, component: kube-scheduler-0, after: 1m}]}]"))
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.refuse = map[string]error{control.FaultPause: errors.New("it is busy")}
		r.phases.supervisor = s
		_, err := r.phases.through(t.Context(), &r.o.Scenario.Phases[0], time.Now())
		if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "phase p: fault pause could not be started: it is busy") {
			t.Errorf("exit code %d, error %v", exitcode.Of(err), err)
		}
		if took := time.Since(s.start); took != 3*time.Second {
			t.Errorf("the phase continued until %s", took)
		}
		want := []string{"fault kill, due 1m0s after the start of phase p, never began, because the phase ended earlier"}
		if !slices.Equal(r.phases.missed, want) {
			t.Errorf("missed %q", r.phases.missed)
		}
	})
}

// If another fault prevents a fault from beginning, the run repeats the request until the phase ends.
func TestFaultBesideAnotherIsAskedForAgain(t *testing.T) {
	r := underway(t, parse(t, `phases:
  - {name: p, for: 20s, faults: [{kind: kill, component: etcd-0, after: 1s, for: 2s}, {kind: webhook, resource: pods, fails: true, after: 2500ms}]}
  - {name: q, for: 10s, faults: [{kind: pause, component: kube-scheduler-0, after: 1s}]}
`))
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.refuse = map[string]error{control.FaultWebhook: errors.New("etcdserver: request timed out"), control.FaultPause: errors.New("it exited")}
		r.phases.supervisor = s
		time.AfterFunc(5*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.refuse, control.FaultWebhook)
		})
		for i := range r.o.Scenario.Phases {
			if _, err := r.phases.through(t.Context(), &r.o.Scenario.Phases[i], time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"1s begin kill", "5.5s begin webhook", "20s clear webhook"}; !slices.Equal(s.log, want) {
			t.Errorf("%q, want %q", s.log, want)
		}
		if want := []string{"fault pause, due 1s after the start of phase q, never began, because the phase ended earlier"}; !slices.Equal(r.phases.missed, want) {
			t.Errorf("missed %q", r.phases.missed)
		}
	})
}

// If the control plane does not support a fault, the error names the fault's line before the first phase. A fault in a
// run on a user's cluster is an error too.
func TestFaultsAreCheckedBeforeTheFirstPhase(t *testing.T) {
	sc := parse(t, `phases:
  - name: p
    for: 1m
    faults:
      - {kind: slowFsync, delay: 25ms}
      - {kind: kill, component: kube-apiserver-0}
      - {kind: pause, component: kube-scheduler-0}
`)
	s := newStage()
	s.refuse = map[string]error{
		control.FaultSlowFsync: errors.New("this kernel has no seccomp user notification"),
		control.FaultKill:      &control.InvalidFault{Problems: []control.Problem{{Path: "components", Msg: "there is no kube-apiserver-0", Hint: "there is none"}}},
	}
	err := checkFaults(t.Context(), s, plan.Of(sc))
	want := "mine.yaml:8: phases.p.faults[0]: slowFsync is not possible here: this kernel has no seccomp user notification\n" +
		"mine.yaml:9: phases.p.faults[1].components: there is no kube-apiserver-0 (there is none)"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	err = refuseFaults(plan.Of(sc))
	if exitcode.Of(err) != exitcode.Usage || strings.Count(err.Error(), "\n") != 2 || !strings.HasPrefix(err.Error(), "mine.yaml:8: phases.p.faults[0]: fault slowFsync works only on a bundled control plane") {
		t.Errorf("exit code %d, error %v", exitcode.Of(err), err)
	}
}

// If a component restarts and the fault is missing in its new process, the run reports that once, and does not pass.
func TestLostFaultIsReported(t *testing.T) {
	r := underway(t, parse(t, "phases: [{name: p, for: 1s}]"))
	f := follower{journal: r.journal, told: map[string]bool{}}
	s := control.FaultStatus{ID: "3", Fault: control.Fault{Kind: control.FaultSlowFsync}, Active: time.Now()}
	f.fault(s)
	if len(f.lost) != 0 {
		t.Errorf("an active fault is reported as lost: %q", f.lost)
	}
	s.Lost = "cannot apply the fault to the new process of etcd-0: no agent"
	f.fault(s)
	f.fault(s)
	want := []string{"fault 3 (slowFsync) ended too early on some of its components: cannot apply the fault to the new process of etcd-0: no agent"}
	if !slices.Equal(f.lost, want) {
		t.Errorf("lost %q, want %q", f.lost, want)
	}
	events, err := timeline.Read(r.dir.Path)
	if err != nil || len(events) != 2 || events[1].Name != "fault lost" || events[1].Detail != want[0] {
		t.Errorf("timeline %+v (%v), want the lost fault as its second event", events, err)
	}
}

func TestActionsRetryOnlyWithFaults(t *testing.T) {
	for faults, want := range map[string]time.Duration{
		"": 0, "{kind: kill, component: etcd-0}": time.Minute, "{kind: nodeFailure, fraction: 1}, {kind: nodeRecovery}": 0,
	} {
		if got := patience(plan.Of(parse(t, "nodes: {count: 1}\nphases: [{name: p, for: 1s, faults: ["+faults+"]}]"))); got != want {
			t.Errorf("patience with faults %q = %s, want %s", faults, got, want)
		}
	}
}

// The timeline contains the supervisor's events: each fault once, with its times and components, and the exits and
// starts of processes.
func TestSupervisorEventsReachTimeline(t *testing.T) {
	r := underway(t, parse(t, "phases: [{name: p, for: 1s}]"))
	s := newStage()
	begun, err := s.Begin(t.Context(), control.Fault{Kind: control.FaultKill, Components: []string{"etcd-0"}, For: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.tell(control.EventExit, "etcd-0")
	f := &follower{journal: r.journal, supervisor: s, told: map[string]bool{}}
	if err := f.next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Clear(t.Context(), begun.ID); err != nil {
		t.Fatal(err)
	}
	s.tell(control.EventReady, "etcd-0")
	f.last(t.Context())
	events, err := timeline.Read(r.dir.Path)
	if err != nil {
		t.Fatal(err)
	}
	count := map[result.EventKind]int{}
	for _, e := range events {
		count[e.Kind]++
		switch {
		case e.Kind == result.EventFaultBegin && (e.Fault != "1" || e.Name != "kill" || !slices.Equal(e.On, []string{"etcd-0"}) || !e.Time.Equal(begun.Active)):
			t.Errorf("%+v", e)
		case e.Kind == result.EventExit && (e.Name != "etcd-0" || !e.Expected):
			t.Errorf("%+v", e)
		}
	}
	for _, kind := range []result.EventKind{result.EventFaultBegin, result.EventFaultEnd, result.EventExit, result.EventReady} {
		if count[kind] != 1 {
			t.Errorf("%d events of kind %s, want 1: %+v", count[kind], kind, events)
		}
	}
}

// The run marks nodes that are not Ready as out of service, and undoes that when they come back.
func TestFailedNodesAreMarkedOutOfService(t *testing.T) {
	r := underway(t, parse(t, `nodes: {count: 4}
phases:
  - {name: lost, for: 1m, faults: [{kind: nodeFailure, fraction: 0.5, outOfService: true}]}
  - {name: back, for: 1m, faults: [{kind: nodeFailure, fraction: 0.25}]}
`))
	addNodes(t, r)
	var mu sync.Mutex
	out := map[string]bool{}
	r.phases.outOfService = func(_ context.Context, node string, on bool) error {
		mu.Lock()
		defer mu.Unlock()
		out[node] = on
		return nil
	}
	ctx, fail := context.WithCancelCause(t.Context())
	defer fail(nil)
	for i := range r.o.Scenario.Phases {
		faults := r.phases.startFaults(ctx, &r.o.Scenario.Phases[i], time.Now(), fail)
		if err := faults.end(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if len(out) != 2 || len(r.phases.missed) != 0 || context.Cause(ctx) != nil {
		t.Fatalf("marked %v, missed %q, %v; want two of the three failed nodes", out, r.phases.missed, context.Cause(ctx))
	}
	back := schedule{phases: r.phases}
	if err := back.returnToService(ctx); err != nil {
		t.Fatal(err)
	}
	for node, still := range out {
		if still {
			t.Errorf("%s is still marked out of service", node)
		}
	}
}
