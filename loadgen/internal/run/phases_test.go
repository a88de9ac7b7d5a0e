package run

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A plane that does not respond for a minute delays the actions, not the faults.
func TestFaultsDoNotWaitForActions(t *testing.T) {
	r := underway(t, parse(t, `phases:
  - name: p
    for: 2m
    actions: [{kind: deploy, name: web, replicas: 1}]
    faults: [{kind: kill, component: kube-scheduler-0, after: 5s, for: 2s, repeat: 3, every: 20s}]
`))
	synctest.Test(t, func(t *testing.T) {
		var err error
		r.phases.workload, err = workload.New(nowhere(), workload.Options{Namespace: "ns", Labels: map[string]string{"a": "b"}, Patience: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		s := newStage()
		r.phases.supervisor = s
		_, err = r.phases.through(t.Context(), &r.o.Scenario.Phases[0], time.Now())
		if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "patch deployment ns/web") {
			t.Errorf("exit code %d, error %v", exitcode.Of(err), err)
		}
		if took := time.Since(s.start); took < time.Minute {
			t.Errorf("the run gave up the action after %s", took)
		}
		if want := []string{"5s begin kill", "25s begin kill", "45s begin kill"}; !slices.Equal(s.log, want) {
			t.Errorf("%q, want %q", s.log, want)
		}
	})
}

// The run repeats a create action while the API server is unavailable. The timeline describes the action.
func TestCreateIsRepeated(t *testing.T) {
	r := underway(t, parse(t, `phases:
  - name: p
    for: 1m
    actions:
      - kind: create
        object: {apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: mine}, spec: {priorityLevelConfiguration: {name: workload-low}}}
`))
	synctest.Test(t, func(t *testing.T) {
		var err error
		r.phases.workload, err = workload.New(nowhere(), workload.Options{Namespace: "ns", Labels: map[string]string{"a": "b"}, Patience: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		answers := []error{&net.OpError{Op: "dial"}, nil}
		r.phases.create = func(_ context.Context, m scenario.Manifest) error {
			asked = append(asked, m.String())
			return answers[len(asked)-1]
		}
		p := &r.o.Scenario.Phases[0]
		if err := r.phases.actions(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if want := []string{"FlowSchema mine", "FlowSchema mine"}; !slices.Equal(asked, want) {
			t.Errorf("%q, want %q", asked, want)
		}
		if got := actionText(p.Actions[0]); got != "create FlowSchema mine" {
			t.Error(got)
		}
		asked, answers = nil, []error{errors.New("create FlowSchema mine: invalid")}
		if err := r.phases.actions(t.Context(), p); exitcode.Of(err) != exitcode.Environment || len(asked) != 1 {
			t.Errorf("%d create requests, want 1: %v", len(asked), err)
		}
	})
}

// A phase lasts as long as the scenario says, even if its start took long.
func TestPhaseTimeCountsFromStart(t *testing.T) {
	s := parse(t, "phases: [{name: p, for: 1m}, {name: q, for: 30s}]")
	// A scenario must not have a condition that never holds, so the test sets it here.
	s.Phases[1].For, s.Phases[1].Until, s.Phases[1].Within = 0, scenario.Until{Text: "podsReady"}, s.Phases[1].For
	r := underway(t, s)
	synctest.Test(t, func(t *testing.T) {
		for i, want := range []time.Duration{50 * time.Second, 20 * time.Second} {
			began := time.Now()
			met, err := r.phases.through(t.Context(), &r.o.Scenario.Phases[i], began.Add(-10*time.Second))
			if took := time.Since(began); took != want || met || err != nil {
				t.Errorf("phase %d took another %s, want %s; met %v, error %v", i, took, want, met, err)
			}
		}
	})
}

// stuck is a control plane that never undoes a fault.
type stuck struct{ *stage }

func (s stuck) Clear(context.Context, string) (control.FaultStatus, error) {
	return control.FaultStatus{}, errors.New("etcd-0 does not go on")
}

// lines keeps the steps that the run shows to the user.
type lines struct {
	silent
	mu    sync.Mutex
	steps []string
}

func (l *lines) Step(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, line)
}

// An interrupted run reports the faults that are still active.
func TestInterruptReportsRemainingFaults(t *testing.T) {
	said := &lines{}
	r := underwayOf(t, parse(t, "phases: [{name: p, for: 1m, faults: [{kind: pause, component: etcd-0}]}]"), console{Progress: said})
	synctest.Test(t, func(t *testing.T) {
		r.phases.supervisor = stuck{newStage()}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := r.phases.through(ctx, &r.o.Scenario.Phases[0], time.Now()); err == nil {
			t.Error("the interrupt caused no error")
		}
	})
	if last := said.steps[len(said.steps)-1]; last != "fault 1 could not be undone: etcd-0 does not go on" {
		t.Errorf("said %q", said.steps)
	}
}

// If a load fails while the run ends after an unmet condition, the run reports the error of the load.
func TestLoadFailureIsNotAnUnmetCondition(t *testing.T) {
	refused := errors.New("load get: refused")
	for _, c := range []struct {
		phases, loads error
		want          string
	}{
		{errConditionNotMet, nil, "condition not met"}, {errConditionNotMet, refused, "load get: refused"},
		{nil, refused, "load get: refused"}, {errors.New("phase p: lost"), refused, "phase p: lost\nload get: refused"},
	} {
		if got := ending(c.phases, c.loads); got.Error() != c.want || errors.Is(got, errConditionNotMet) != (c.loads == nil) {
			t.Errorf("ending(%v, %v) = %v, want %s", c.phases, c.loads, got, c.want)
		}
	}
	if err := ending(nil, nil); err != nil {
		t.Error(err)
	}
}
