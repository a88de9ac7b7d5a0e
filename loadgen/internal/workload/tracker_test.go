package workload

import (
	"fmt"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/stall"
)

// story sends a tracker a sequence of events, one second apart.
type story struct {
	*tracker
	t  *testing.T
	at time.Time
}

func newStory(t *testing.T) *story {
	s := &story{tracker: newTracker(func(time.Duration) {}, (*stall.Meter)(nil).Total), t: t, at: time.Unix(0, 0)}
	s.beginPhase("one")
	return s
}

// pod sends an event of a pod of Deployment "web" with revision "1". The pod is Ready on node, or unbound if node is
// "". The functions f change it.
func (s *story) pod(name, node string, f ...func(*object)) {
	s.at = s.at.Add(time.Second)
	s.saw(podObject(name, node, f...), s.at, false)
}

func podObject(name, node string, f ...func(*object)) object {
	o := object{kind: podKind, name: name, uid: name, deployment: "web", revision: "1", nodeName: node, ready: node != ""}
	for _, change := range f {
		change(&o)
	}
	return o
}

func starting(o *object)    { o.ready = false }
func terminating(o *object) { o.deleting = true }
func ended(o *object)       { o.ended = true }
func updated(o *object)     { o.revision = "2" }

func (s *story) podGone(name string) {
	s.at = s.at.Add(time.Second)
	s.gone(object{kind: podKind, uid: name}, s.at)
}

func (s *story) nodeIs(name string, ready bool) {
	s.at = s.at.Add(time.Second)
	s.saw(object{kind: nodeKind, name: name, ready: ready}, s.at, false)
}

// status sends a status of the Deployment controller at a generation: n replicas, all updated and available.
func (s *story) status(n, generation int64) {
	s.at = s.at.Add(time.Second)
	s.saw(object{
		kind: deploymentKind, name: "web", uid: "d", deployment: "web", specReplicas: n,
		observed: generation, replicas: n, updated: n, available: n,
	}, s.at, false)
}

// deployed returns a story with a whole Deployment: its pods p0, p1, ... are Ready on the nodes n0, n1, ...
func deployed(t *testing.T, n int64) *story {
	s := newStory(t)
	s.want("web", n, "1")
	s.accepted("web", 1, s.at)
	for i := range n {
		s.nodeIs(fmt.Sprintf("n%d", i), true)
		s.pod(fmt.Sprintf("p%d", i), fmt.Sprintf("n%d", i))
	}
	s.status(n, 1)
	s.mustBeWhole(true, "deployed")
	return s
}

func (s *story) mustBeWhole(want bool, when string) {
	s.t.Helper()
	if got := s.allPodsReady(); got != want {
		s.t.Errorf("%s: whole = %t, want %t (%+v)", when, got, want, *s.of("web"))
	}
}

func TestStartupCountsArrivalsInThePhaseOfTheFirst(t *testing.T) {
	s := newStory(t)
	s.pod("a", "")            // 1 s
	s.pod("a", "")            // 2 s: nothing new
	s.pod("a", "n", starting) // 3 s: bound
	s.beginPhase("two")
	s.pod("a", "n") // 4 s: Ready
	s.pod("a", "n", starting)
	s.pod("a", "n") // Ready again does not count: a pod starts once
	s.podGone("a")
	got := s.results()
	one, two := got["one"], got["two"]
	if one.PodsCreated != 1 || two.PodsReady != 1 || two.PodsDeleted != 1 || one.PodsReady != 0 {
		t.Errorf("counts: phase one %+v, phase two %+v", one, two)
	}
	if one.ToScheduled.Max != 2 || one.ToReady.Max != 1 || one.Startup.Max != 3 || one.Startup.Count != 1 {
		t.Errorf("wrong times in the phase in which the pod was first seen: %+v", one)
	}
	if two.Startup.Count != 0 {
		t.Errorf("the phase in which the pod became Ready has startup times too: %+v", two)
	}
	if len(s.pods) != 0 {
		t.Errorf("the tracker keeps %d deleted pods", len(s.pods))
	}
}

func TestRelistForgetsWhatIsGoneAndMeasuresNothingNew(t *testing.T) {
	s := newStory(t)
	s.pod("stays", "")
	s.pod("goes", "")
	later := s.at.Add(10 * time.Second)
	s.replace(podKind, []object{podObject("stays", "n"), podObject("new", "n")}, later)
	got := s.results()["one"]
	if got.PodsCreated != 3 || got.PodsDeleted != 1 || got.PodsReady != 2 || got.PodsUnmeasured != 1 {
		t.Errorf("wrong counts after a relist: %+v", got)
	}
	if got.Startup.Count != 1 || got.Startup.Max != 11 {
		t.Errorf("startup times %+v, want only one, of the pod whose creation was seen", got.Startup)
	}
}

func TestWholeThroughARollingUpdate(t *testing.T) {
	s := deployed(t, 2)
	s.want("web", 2, "2")
	s.mustBeWhole(false, "the update is wanted, the server does not know yet")
	s.accepted("web", 2, s.at)
	s.mustBeWhole(false, "accepted, the old status still says all is well")
	s.pod("p2", "n0", updated)
	s.pod("p3", "n1", updated)
	s.status(2, 2)
	s.mustBeWhole(false, "old pods still run")
	s.pod("p0", "n0", terminating)
	s.podGone("p0")
	s.pod("p1", "n1", terminating)
	s.mustBeWhole(false, "an old pod is still terminating")
	s.podGone("p1")
	s.mustBeWhole(true, "updated")
}

func TestWholeNeedsTheControllersWord(t *testing.T) {
	s := deployed(t, 1)
	s.want("web", 2, "1")
	s.accepted("web", 2, s.at)
	s.pod("p1", "n0")
	s.mustBeWhole(false, "all pods are there, the status has not caught up")
	s.status(2, 1)
	s.mustBeWhole(false, "the status is of an older generation")
	s.status(2, 2)
	s.mustBeWhole(true, "scaled")
}

func TestDeploymentsThatAreNotAwaitedMayLackPods(t *testing.T) {
	s := deployed(t, 1)
	s.want("stuck", 1, "1")
	s.accepted("stuck", 1, s.at)
	s.pod("s0", "", func(o *object) { o.deployment = "stuck" })
	s.mustBeWhole(false, "all are awaited")
	if !s.allPodsReady("web") || s.allPodsReady("stuck") || s.allPodsReady("web", "stuck") {
		t.Error("allPodsReady: want web ready and stuck not ready")
	}
}

func TestWholeAfterADeleteMeansGone(t *testing.T) {
	s := deployed(t, 1)
	s.want("web", 0, "1")
	s.accepted("web", deleted, s.at)
	s.gone(object{kind: deploymentKind, name: "web", uid: "d"}, s.at)
	s.mustBeWhole(false, "the pod is still there")
	s.podGone("p0")
	s.mustBeWhole(true, "deleted")
	if n := s.liveNow().PodsWanted; n != 0 {
		t.Errorf("%d pods wanted, want 0", n)
	}
}

func TestFailedPodsAreIgnored(t *testing.T) {
	s := deployed(t, 1)
	s.pod("evicted", "n0", starting, ended)
	s.mustBeWhole(true, "a Failed pod that its ReplicaSet has replaced")
	s.pod("old", "n0", starting, ended, terminating)
	s.mustBeWhole(false, "a kubelet has ended it, the object is still there")
	s.podGone("old")
	s.mustBeWhole(true, "gone")
}

func TestRecoveryClocks(t *testing.T) {
	s := deployed(t, 3)
	failedAt := s.at
	s.nodesFailed(failedAt, []string{"n0", "n1"})
	s.mustBeWhole(false, "the API still calls the pods Ready, their nodes are gone")
	if got := s.live.PodsReady; got != 1 {
		t.Errorf("%d pods Ready right after the failure, want 1", got)
	}
	s.nodeIs("n0", false)
	if s.allFailedNotReady() {
		t.Error("allFailedNotReady with one Ready node")
	}
	s.nodeIs("n1", false) // 2 s after the failure
	if !s.allFailedNotReady() {
		t.Error("not allFailedNotReady, although both nodes are NotReady")
	}
	s.beginPhase("recovery")
	s.pod("p0", "n0", starting, terminating)
	s.pod("p1", "n1", starting, terminating)
	s.pod("p3", "n2")
	s.pod("p4", "n2") // 6 s after the failure; p0 and p1 stay: no kubelet ends them
	got := s.results()
	if n := got["one"].NotReadyAfter; n == nil || *n != 2 {
		t.Errorf("NotReadyAfter = %v, want 2 s in the phase of the failure", n)
	}
	if r := got["recovery"].RecoveredAfter; r == nil || *r != 6 {
		t.Errorf("RecoveredAfter = %v, want 6 s in the phase in which the workload recovered", r)
	}
	if got["recovery"].NotReadyAfter != nil || got["one"].RecoveredAfter != nil {
		t.Error("a phase reports a clock that did not stop in it")
	}
	s.status(3, 1)
	s.mustBeWhole(true, "recovered; terminating pods on failed nodes do not count")
	s.nodesRecovered(s.at)
	s.mustBeWhole(false, "the nodes are back, their old pods can end now")
	s.podGone("p0")
	s.podGone("p1")
	s.mustBeWhole(true, "all is as before")
}

func TestFailureWithoutPodsHasNoRecovery(t *testing.T) {
	s := deployed(t, 1)
	s.nodeIs("spare", true)
	s.nodesFailed(s.at, []string{"spare"})
	s.nodeIs("spare", false)
	s.want("web", 1, "2") // the workload lacks pods, but not because of the failure
	s.pod("p1", "n0", updated)
	s.podGone("p0")
	got := s.results()["one"]
	if got.NotReadyAfter == nil || got.RecoveredAfter != nil {
		t.Errorf("NotReadyAfter = %v, RecoveredAfter = %v; want a value and nil", got.NotReadyAfter, got.RecoveredAfter)
	}
}

func TestNodesThatReturnInTimeWereNeverNotReady(t *testing.T) {
	s := deployed(t, 1)
	s.nodesFailed(s.at, []string{"n0"})
	s.nodesRecovered(s.at)
	s.nodeIs("n0", false) // a late event
	s.nodeIs("n0", true)
	got := s.results()["one"]
	if got.NotReadyAfter != nil {
		t.Errorf("NotReadyAfter = %v, want nil: the nodes returned first", *got.NotReadyAfter)
	}
	if got.RecoveredAfter == nil {
		t.Error("no RecoveredAfter, although the pods returned with their node")
	}
	if s.allFailedNotReady() {
		t.Error("no node counts as failed any more")
	}
}

func TestLiveFollowsPodsAndNodes(t *testing.T) {
	s := newStory(t)
	s.want("web", 4, "1")
	s.nodeIs("n0", true)
	s.nodeIs("n1", true)
	s.nodeIs("n1", false)
	s.pod("a", "")
	s.pod("b", "n0", starting)
	s.pod("c", "n0")
	s.pod("d", "n0")
	s.pod("d", "n0", terminating)
	want := Live{PodsWanted: 4, PodsReady: 1, PodsPending: 2, PodsUnscheduled: 1, PodsTerminating: 1, Nodes: 2, NodesReady: 1, NodesUsed: 1}
	if got := s.liveNow(); got != want {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	s.recount()
	if got := s.liveNow(); got != want {
		t.Errorf("after recount: %+v", got)
	}
	s.gone(object{kind: nodeKind, name: "n0"}, s.at)
	if s.nodesReady([]string{"n0"}) || s.live.NodesReady != 0 || s.live.Nodes != 1 {
		t.Errorf("after the deletion of a node: %+v", s.live)
	}
}

// External startup times exclude the time during which the generator was stalled.
func TestExternalStartupLeavesOutStalls(t *testing.T) {
	s := newStory(t)
	s.stalled = func(at time.Time) time.Duration { // from the third second to the seventh
		return min(max(at.Sub(time.Unix(3, 0)), 0), 4*time.Second)
	}
	s.want("web", 1, "1")
	s.pod("p0", "", starting) // at 1 s
	s.at = s.at.Add(8 * time.Second)
	s.pod("p0", "n0")
	w := s.results()["one"]
	if w.Startup.Max != 9 || w.External.Max != 5 {
		t.Errorf("startup %v s, external %v s; want 9 and 5", w.Startup.Max, w.External.Max)
	}
}
