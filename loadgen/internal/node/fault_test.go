package node

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// readiness returns the condition Ready of a node at the stub. The caller holds the lock.
func (s *stub) readiness(node string) corev1.NodeCondition {
	c := s.nodes[node].Status.Conditions
	return c[len(c)-1]
}

func TestNodesShutDownInOrder(t *testing.T) {
	s := newStub(t)
	f := s.fleet(4, nil)
	must(t, f.Start(t.Context()))
	for _, name := range f.Names() {
		s.bind(name, "pod-"+name, nil)
	}
	s.bind(f.Names()[0], "done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	eventually(t, "all run", func() bool { return f.Live().PodsRunning == 4 })
	gone := f.Shutdown(0.5)
	if len(gone) != 2 {
		t.Fatalf("%d nodes shut down, want 2", len(gone))
	}
	s.await("their connections are closed", func() bool { return len(s.conns) == 2 })
	s.locked(func() {
		for _, name := range gone {
			if c := s.readiness(name); c.Status != corev1.ConditionFalse || c.Reason != "KubeletNotReady" || c.Message != "node is shutting down" {
				t.Errorf("%s reported %+v", name, c)
			}
			st := s.pods["pod-"+name].Status
			if st.Phase != corev1.PodFailed || st.Reason != "Terminated" || st.ContainerStatuses[0].State.Terminated == nil {
				t.Errorf("status of the pod = %s, %s, %+v", st.Phase, st.Reason, st.ContainerStatuses)
			}
			if c := condition(s.pods["pod-"+name], corev1.DisruptionTarget); c == nil || c.Reason != "TerminationByKubelet" {
				t.Errorf("condition DisruptionTarget of the pod = %v", c)
			}
		}
		if s.pods["done"].Status.Phase != corev1.PodSucceeded {
			t.Error("the shutdown ended a finished pod again")
		}
	})
	eventually(t, "they are counted", func() bool {
		l := f.Live()
		return l.Ready == 2 && l.Failed == 2 && l.PodsRunning == 2
	})
	if again := f.Shutdown(1); len(again) != 2 {
		t.Errorf("%d of the 2 remaining nodes shut down", len(again))
	}
	eventually(t, "all are gone", func() bool { return f.Live().Failed == 4 })
	must(t, f.Recover())
	eventually(t, "all are back", func() bool { l := f.Live(); return l.Ready == 4 && l.Failed == 0 })
	s.await("and say so", func() bool {
		for _, name := range f.Names() {
			if s.readiness(name).Status != corev1.ConditionTrue {
				return false
			}
		}
		return true
	})
}

// held makes the stub hold back the responses to a node's status patches until the channel is closed.
func (s *stub) held() chan struct{} {
	release := make(chan struct{})
	s.update(func() {
		s.answer = func(_ http.ResponseWriter, r request) bool {
			if strings.HasSuffix(r.path, "/status") && strings.Contains(r.path, "/nodes/") {
				<-release
			}
			return false
		}
	})
	return release
}

func TestPodThatComesToANodeShuttingDownIsRejected(t *testing.T) {
	s, f := started(t, nil)
	release := s.held()
	f.Shutdown(1)
	s.bind("sg-0", "late", nil)
	s.await("it is rejected", func() bool {
		st := s.pods["late"].Status
		return st.Phase == corev1.PodFailed && st.Reason == "NodeShutdown"
	})
	close(release)
	s.await("the connection is closed", func() bool { return len(s.conns) == 0 })
}

func TestShutdownDoesNotWaitForAStalledServer(t *testing.T) {
	clock := newFakeClock(time.Now())
	s, f := started(t, func(c *Config) { c.clock = clock })
	release := s.held()
	t.Cleanup(func() { close(release) })
	f.Shutdown(1)
	if l := f.Live(); l.Failed != 0 {
		t.Error("the node stopped before its shutdown was reported")
	}
	clock.Step(shutdownGrace)
	eventually(t, "it is gone when its time is over", func() bool { return f.Live().Failed == 1 })
}

func TestRecoveryEndsAShutdown(t *testing.T) {
	s, f := started(t, nil)
	release := s.held()
	f.Shutdown(1)
	must(t, f.Recover())
	close(release)
	eventually(t, "the node is back", func() bool { l := f.Live(); return l.Ready == 1 && l.Failed == 0 })
}

// A node that comes back during a control plane outage registers when the outage is over, however late.
func TestRecoveryOutlastsAnOutage(t *testing.T) {
	clock := newFakeClock(time.Now())
	s, f := started(t, func(c *Config) { c.clock = clock })
	f.Fail(1)
	begin := clock.Now()
	s.locked(func() {
		s.answer = func(w http.ResponseWriter, r request) bool {
			if !strings.HasSuffix(r.path, "/nodes") || r.method != "POST" || clock.Since(begin) > 3*registerPatience {
				return false
			}
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "not now")
			return true
		}
	})
	must(t, f.Recover())
	eventually(t, "the node is back", func() bool {
		clock.Step(time.Second)
		l := f.Live()
		return l.Ready == 1 && l.Failed == 0
	})
	if clock.Since(begin) < 3*registerPatience {
		t.Errorf("the node was back after %s", clock.Since(begin))
	}
}

func TestSlowNodeWritesLate(t *testing.T) {
	clock := newFakeClock(time.Now())
	s, f := started(t, func(c *Config) { c.clock = clock })
	if slow := f.Slow(1, 4*time.Second); len(slow) != 1 || f.Live().Slow != 1 {
		t.Fatalf("slow: %v, %+v", slow, f.Live())
	}
	if again := f.Slow(1, time.Second); len(again) != 0 {
		t.Errorf("the fault hit slow nodes again: %v", again)
	}
	waiters := clock.Waiters()
	s.bind("sg-0", "a", nil)
	eventually(t, "its work is put off", func() bool { return clock.Waiters() >= waiters+3 }) // creating, running, events
	s.locked(func() {
		if n := len(s.seen("PATCH", "/pods/a/status")) + len(s.events); n != 0 {
			t.Errorf("%d requests for the pod during the delay, want none", n)
		}
	})
	clock.Step(4 * time.Second)
	eventually(t, "it runs when the delay is over", func() bool { return f.Live().PodsRunning == 1 })

	// Renewals are 14 s apart and none is missed.
	k := f.kubelets[0]
	var due []time.Time
	for i := range 3 {
		k.heartbeat.mu.Lock()
		next := k.heartbeat.due
		k.heartbeat.mu.Unlock()
		due = append(due, next)
		if next.After(clock.Now()) {
			clock.SetTime(next)
		}
		eventually(t, "it is renewed", func() bool { return f.Results().Heartbeats == int64(i+1) })
	}
	if gap := due[2].Sub(due[1]); gap != interval+4*time.Second {
		t.Errorf("renewals %v apart", gap)
	}
	if r := f.Results(); r.MissedByGenerator+r.MissedByServer != 0 || r.Delayed != 2 {
		t.Errorf("missed %d and %d, delayed %d", r.MissedByGenerator, r.MissedByServer, r.Delayed)
	}
	must(t, f.Recover())
	if f.Live().Slow != 0 || k.heartbeat.due.Sub(clock.Now()) > interval {
		t.Errorf("%d are slow after the recovery; the next renewal is due in %v", f.Live().Slow, k.heartbeat.due.Sub(clock.Now()))
	}
}

func TestSharedNodesShutDownToo(t *testing.T) {
	s := newStub(t)
	f := s.fleet(5, func(c *Config) {
		c.Spec.Fidelity, c.Identities = Shared, NewShared(s.config())
		c.Spec.LeaseRenew = scenario.Duration(time.Hour)
	})
	must(t, f.Start(t.Context()))
	gone := f.Shutdown(0.2)
	s.await("it is not Ready", func() bool { return s.readiness(gone[0]).Status == corev1.ConditionFalse })
	eventually(t, "the others stay", func() bool { l := f.Live(); return l.Failed == 1 && l.Ready == 4 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) == 0 {
		t.Error("the fault closed the connections of all nodes")
	}
}

// Containers continue while their node is silent: a container whose time is over when the node returns has ended.
func TestContainersOfAFailedNodeEndInTheirTime(t *testing.T) {
	s, f := started(t, nil)
	for name, after := range map[string]string{"short": "30m", "long": "3h"} {
		s.bind("sg-0", name, func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Annotations = map[string]string{scenario.ExitAfterAnnotation: after}
		})
	}
	eventually(t, "both run", func() bool { return f.Live().PodsRunning == 2 })
	f.Fail(1)
	s.update(func() {
		for _, name := range []string{"short", "long"} {
			s.pods[name].Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(time.Now().Add(-time.Hour))
		}
	})
	must(t, f.Recover())
	s.await("one has ended meanwhile", func() bool { return s.pods["short"].Status.Phase == corev1.PodSucceeded })
	s.locked(func() {
		if phase := s.pods["long"].Status.Phase; phase != corev1.PodRunning {
			t.Errorf("the other is %s, want Running", phase)
		}
	})
}
