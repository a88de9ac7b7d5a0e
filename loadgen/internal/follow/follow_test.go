package follow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/condition"
)

const podsPath = "/api/v1/namespaces/ns/pods"

// waiting calls Wait in a goroutine, and returns when Wait has started to wait.
func waiting(t *testing.T, f *Follower, name string) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f.Wait(t.Context(), name) }()
	await(t, f, func() bool { return len(f.waits) == 1 })
	return ended
}

func TestConditionHoldsByEvents(t *testing.T) {
	s := newStub(t)
	s.set(podsPath, list("10", podOf("a", "5", "Pending")))
	f := s.running(Options{Conditions: conditions(t, `count(pods where status.phase == "Running") >= 2`)})
	w := s.watch()
	if w.Version != "10" {
		t.Errorf("the watch starts at version %s, want 10", w.Version)
	}
	held := waiting(t, f, "p0")
	w.Events <- event("MODIFIED", podOf("a", "11", "Running"))
	w.Events <- event("ADDED", podOf("b", "12", "Pending"))
	select {
	case <-held:
		t.Fatal("the condition is true with one Running pod")
	default:
	}
	w.Events <- event("MODIFIED", podOf("b", "13", "Running"))
	if err := <-held; err != nil {
		t.Error(err)
	}
	if got, want := f.Describe("p0"), `2 of 2 pods where status.phase == "Running"`; got != want {
		t.Errorf("Describe = %q, want %q", got, want)
	}
}

// Wait detects a condition that is true only for one event, even if it is false again before the test can read it.
func TestConditionThatHoldsForOneEvent(t *testing.T) {
	s := newStub(t)
	s.set(podsPath, list("10"))
	f := s.running(Options{Conditions: conditions(t, `pods.size() == 1`)})
	w := s.watch()
	held := waiting(t, f, "p0")
	w.Events <- event("ADDED", podOf("a", "11", "")) + event("ADDED", podOf("b", "12", ""))
	if err := <-held; err != nil {
		t.Error(err)
	}
}

// await waits until cond returns true. It calls cond with the lock held.
func await(t *testing.T, f *Follower, cond func() bool) {
	t.Helper()
	for {
		f.mu.Lock()
		ok := cond()
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the condition never became true")
		}
	}
}

func TestOneWatchForEachResource(t *testing.T) {
	s := newStub(t)
	s.set(podsPath, list("10"))
	s.set("/api/v1/nodes", list("10"))
	ready := mustState(t, "pods", "ready")
	created := mustState(t, "pods", "created")
	f := s.running(Options{
		Conditions:  conditions(t, `pods.size() > 0 && pods.size() < 5`, `all(pods where status.phase == "Running") && nodes.size() == 0`),
		Transitions: []Transition{{Name: "a", Set: condition.Set{Resource: "pods"}, From: created, To: ready}, {Name: "b", Set: condition.Set{Resource: "pods"}, From: created, To: ready}},
	})
	s.watch()
	s.watch()
	await(t, f, func() bool { return f.missing(f.awaited["p1"]) == "" })
	for begin, want := range map[string]int{"GET " + podsPath + "?": 2, "GET /api/v1/nodes?": 2} {
		if got := s.count(begin); got != want {
			t.Errorf("%d requests %s, want a list and a watch", got, begin)
		}
	}
	if s.count("GET /api/v1/nodes?continue=&labelSelector=run%3Dr") != 1 {
		t.Error("the list of nodes does not select the run's label")
	}
}

// After a lost watch, the next watch delivers the missed events. After a 410, the Follower lists the objects again, and
// missing objects count as deleted.
func TestLostWatchAndRelist(t *testing.T) {
	s := newStub(t)
	s.set(podsPath, list("10", podOf("a", "5", "Pending"), podOf("b", "6", "Pending")), list("30", podOf("a", "25", "Running"), podOf("c", "26", "Running")))
	f := s.running(Options{Conditions: conditions(t, `count(pods where status.phase == "Running") == 2 && pods.size() == 2`)})
	w := s.watch()
	held := waiting(t, f, "p0")
	w.Events <- event("MODIFIED", podOf("a", "11", "Running"))
	close(w.Events)
	w = s.watch()
	if w.Version != "11" {
		t.Errorf("the watch resumes at version %s, want 11, as in the last event", w.Version)
	}
	w.Events <- event("BOOKMARK", condition.Object{"metadata": map[string]any{"resourceVersion": "20"}})
	close(w.Events)
	w = s.watch()
	if w.Version != "20" {
		t.Errorf("the watch resumes at version %s, want 20, as in the bookmark", w.Version)
	}
	w.Events <- event("ERROR", condition.Object{"kind": "Status", "code": 410, "reason": "Expired"})
	if err := <-held; err != nil {
		t.Error(err)
	}
	if w = s.watch(); w.Version != "30" {
		t.Errorf("the watch starts at version %s, want 30, as in the new list", w.Version)
	}
	if n := s.count("GET " + podsPath + "?continue="); n != 2 {
		t.Errorf("%d lists, want 2", n)
	}
}

// If a condition is true when Wait is called, the watched state may be outdated, so Wait lists the objects.
func TestStateFromBeforeTheWaitDoesNotCount(t *testing.T) {
	s := newStub(t)
	s.set(podsPath, list("10", podOf("a", "5", "Running")), list("20", podOf("a", "15", "Pending")))
	f := s.running(Options{Conditions: conditions(t, `count(pods where status.phase == "Running") == 1`), Recheck: time.Hour})
	w := s.watch()
	await(t, f, func() bool { return f.holds(f.awaited["p0"]) })
	held := waiting(t, f, "p0")
	for s.count("GET "+podsPath) < 3 { // list, watch, list
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("Wait did not list the objects")
		}
	}
	w.Events <- event("MODIFIED", podOf("a", "15", "Pending"))
	await(t, f, func() bool { return !f.holds(f.awaited["p0"]) })
	select {
	case <-held:
		t.Fatal("Wait returned because of the outdated state")
	default:
	}
	w.Events <- event("MODIFIED", podOf("a", "21", "Running"))
	if err := <-held; err != nil {
		t.Error(err)
	}
}

func TestStateThatTheServerConfirmsCounts(t *testing.T) {
	s := newStub(t)
	s.set(podsPath, list("10", podOf("a", "5", "Running")))
	f := s.running(Options{Conditions: conditions(t, `count(pods where status.phase == "Running") == 1`), Recheck: time.Hour})
	s.watch()
	await(t, f, func() bool { return f.holds(f.awaited["p0"]) })
	if err := f.Wait(t.Context(), "p0"); err != nil {
		t.Error(err)
	}
}

func TestResourceOfTheRunIsAwaited(t *testing.T) {
	s := newStub(t)
	s.set("/apis/apps/v1/namespaces/ns/widgets", list("10", named("w", "5")))
	f := s.running(Options{
		Conditions: conditions(t, `widgets.apps.size() == 1`),
		Later:      func(resource string) bool { return resource == "widgets.apps" },
	})
	held := waiting(t, f, "p0")
	if err := f.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	for s.count("GET /apis/apps/v1?") < 2 {
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the Follower did not repeat discovery")
		}
	}
	s.mu.Lock()
	s.apps["widgets"] = true
	s.mu.Unlock()
	s.watch()
	if err := <-held; err != nil {
		t.Error(err)
	}
}

func TestFollowerRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		status int
		want   string
	}{
		"unknown resource": {`widgets.apps.size() > 0`, 200, `the API server has no resource "widgets.apps"`},
		"forbidden":        {`pods.size() > 0`, 403, "list pods: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.set(podsPath, answer{c.status, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": c.status}})
			f := s.follower(Options{Conditions: conditions(t, c.text)})
			err := f.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if err := f.Wait(t.Context(), "p0"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Wait after the end of Run: %v", err)
			}
		})
	}
}

func TestNamespaceOfAResourceWithout(t *testing.T) {
	s := newStub(t)
	c := condition.OfObjects("nodes", condition.Count{Set: condition.Set{Resource: "nodes", Namespace: "kube-system"}}, condition.All)
	f := s.follower(Options{Conditions: map[string]*condition.Condition{"p": c}})
	if err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nodes are cluster-scoped (remove namespace: kube-system") {
		t.Error(err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	s := newStub(t)
	s.set(podsPath, list("10", podOf("a", "5", "Pending")))
	f := s.running(Options{Conditions: conditions(t, `count(pods where status.phase == "Running") >= 1`)})
	s.watch()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Wait(ctx, "p0"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got, want := f.Describe("p0"), `0 of 1 pods where status.phase == "Running"`; got != want {
		t.Errorf("Describe = %q, want %q", got, want)
	}
}

func mustState(t *testing.T, resource, text string) condition.State {
	t.Helper()
	s, err := condition.ParseState(resource, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
