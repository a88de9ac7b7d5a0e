package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/stormglass/stormglass/loadgen/result"
)

// change requests a revision of the Deployment "web" now.
func (s *story) change(action string, pods, replicas int64, revision string) {
	s.want("web", replicas, revision)
	s.begin("web", action, pods, revision, true, s.at)
	s.at = s.at.Add(time.Second)
	s.accepted("web", 1, s.at)
}

func (s *story) replicaSet(revision string, replicas int64) {
	s.at = s.at.Add(time.Second)
	s.saw(object{kind: replicaSetKind, name: "web-" + revision, deployment: "web", revision: revision, specReplicas: replicas}, s.at, false)
}

func (s *story) slice(pods ...string) {
	s.at = s.at.Add(time.Second)
	s.saw(object{kind: sliceKind, name: "web-x", deployment: "web", endpoints: pods}, s.at, false)
}

// mustHop checks the count, first and last of a hop. The times are in seconds since the change.
func mustHop(t *testing.T, r result.Rollout, name string, count int64, first, last float64) {
	t.Helper()
	for _, h := range r.Hops {
		if h.Name != name {
			continue
		}
		if h.Count != count || h.First == nil || *h.First != first || *h.Last != last {
			t.Errorf("hop %s: %+v (first %v, last %v), want %d from %v to %v", name, h, h.First, h.Last, count, first, last)
		}
		return
	}
	t.Errorf("hop %q is missing in %+v", name, r)
}

func TestRolloutIsTimedHopByHop(t *testing.T) {
	s := newStory(t)
	s.change("deploy", 2, 2, "1") // acknowledged after 1 s
	s.replicaSet("1", 2)          // 2
	s.replicaSet("1", 2)          // 3: only its status changes
	s.pod("a", "")                // 4
	s.pod("b", "")                // 5
	s.pod("a", "n", starting)     // 6
	s.pod("b", "n", starting)     // 7
	s.pod("a", "n")               // 8
	s.slice("a")                  // 9
	s.slice("a", "b")             // 10: the slice watch is ahead of the pod watch
	s.pod("b", "n")               // 11
	s.pod("c", "n")               // 12: a later replacement of another pod

	got := s.results()["one"]
	if len(got.Rollouts) != 1 || !got.Rollouts[0].Complete || got.Rollouts[0].Pods != 2 {
		t.Fatalf("rollouts: %+v", got.Rollouts)
	}
	r := got.Rollouts[0]
	mustHop(t, r, "api write", 1, 1, 1)
	mustHop(t, r, "replicaset", 1, 2, 2)
	mustHop(t, r, "pods", 2, 4, 5)
	mustHop(t, r, "binding", 2, 6, 7)
	mustHop(t, r, "ready", 2, 8, 11)
	mustHop(t, r, "endpointslice", 2, 9, 10)
	if e := got.ToEndpoint; e.Count != 2 || e.Max != 1 {
		t.Errorf("time from Ready until in a slice: %+v, want 1 s and 0 s", e)
	}
}

func TestRollingUpdateCountsNewPodsOnly(t *testing.T) {
	s := deployed(t, 2)
	s.change("rollingUpdate", 2, 2, "2")
	s.replicaSet("1", 1) // the old ReplicaSet shrinks
	s.replicaSet("2", 1) // 3
	s.pod("p0", "n0", terminating)
	s.pod("p2", "n0", updated) // 5
	s.replicaSet("2", 2)       // 6
	s.pod("p3", "n1", updated) // 7
	s.slice("p2", "p3")        // 8

	r := s.results()["one"].Rollouts[0]
	mustHop(t, r, "replicaset", 2, 3, 6)
	mustHop(t, r, "pods", 2, 5, 7)
	mustHop(t, r, "endpointslice", 2, 8, 8)
	if !r.Complete {
		t.Errorf("the rollout is not complete: %+v", r)
	}
}

func TestEndpointSeenBeforeItsPodIsNotLost(t *testing.T) {
	s := newStory(t)
	s.change("deploy", 1, 1, "1")
	s.slice("a")              // 2
	s.pod("a", "n", starting) // 3
	s.pod("a", "n")           // 4
	r := s.results()["one"].Rollouts[0]
	mustHop(t, r, "endpointslice", 1, 2, 2)
	s.podGone("a")
	if len(s.endpoints) != 0 {
		t.Errorf("the tracker keeps %d endpoints after their pods are gone", len(s.endpoints))
	}
}

// The tracker does not keep endpoints of deleted pods until the end of the run.
func TestEndpointsOfPodsThatAreGoneAreForgotten(t *testing.T) {
	s := newStory(t)
	for i := range 10 * maxEarly {
		s.slice(fmt.Sprint("gone-", i)) // one slice each second
	}
	if n := len(s.endpoints); n > maxEarly {
		t.Errorf("the tracker keeps %d endpoints without pods", n)
	}
}

// If a slice arrives before its pod, the tracker records the slice's time late, but it still counts as the first.
func TestFirstAndLastEndpointAreByTime(t *testing.T) {
	s := newStory(t)
	s.change("deploy", 2, 2, "1")
	s.slice("b")      // 2
	s.pod("a", "n")   // 3
	s.slice("b", "a") // 4
	s.pod("b", "n")   // 5
	mustHop(t, s.results()["one"].Rollouts[0], "endpointslice", 2, 2, 4)
}

func TestStoppedRolloutNamesItsStep(t *testing.T) {
	s := newStory(t)
	s.change("deploy", 2, 2, "1")
	s.replicaSet("1", 2)
	s.pod("a", "")
	r := s.results()["one"].Rollouts[0]
	if r.Complete {
		t.Error("the rollout is complete although a pod is missing")
	}
	for _, h := range r.Hops {
		if reached := h.Count > 0; reached != (h.First != nil && h.Last != nil) {
			t.Errorf("hop %+v has a time without an arrival, or an arrival without a time", h)
		}
	}
}

func TestHopsAreMetricsOfTheLastRollout(t *testing.T) {
	s := newStory(t)
	s.change("deploy", 1, 1, "1")
	s.replicaSet("1", 1)
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(hopCollector{s.lastRollouts}); err != nil {
		t.Fatal(err)
	}
	want := `# HELP stormglass_workload_rollout_hop_seconds Time from the last change of a workload until the first and the last of its objects reached a step of the rollout, such as the binding of pods.
# TYPE stormglass_workload_rollout_hop_seconds gauge
stormglass_workload_rollout_hop_seconds{deployment="web",hop="api write",piece="first"} 1
stormglass_workload_rollout_hop_seconds{deployment="web",hop="api write",piece="last"} 1
stormglass_workload_rollout_hop_seconds{deployment="web",hop="replicaset",piece="first"} 2
stormglass_workload_rollout_hop_seconds{deployment="web",hop="replicaset",piece="last"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
