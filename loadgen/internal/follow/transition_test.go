package follow

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stormglass/stormglass/loadgen/internal/condition"
	"github.com/stormglass/stormglass/loadgen/result"
)

// course is a transition for which a test sets the times of changes, in seconds.
type course struct {
	t *testing.T
	*passage
	begin time.Time
}

func newCourse(t *testing.T, resource, from, to string) *course {
	c := &course{t: t, begin: time.Unix(1000, 0)}
	c.passage = newPassage(Transition{
		Name: "x", Set: condition.Set{Resource: resource}, Selector: labels.Everything(),
		From: mustState(t, resource, from), To: mustState(t, resource, to),
	}, func(time.Time) time.Duration { return 0 })
	return c
}

func (c *course) at(seconds float64) time.Time {
	return c.begin.Add(time.Duration(seconds * float64(time.Second)))
}

func (c *course) event(seconds float64, o condition.Object)  { c.saw(uidOf(o), o, c.at(seconds), false) }
func (c *course) listed(seconds float64, o condition.Object) { c.saw(uidOf(o), o, c.at(seconds), true) }

func withCondition(name, kind, status string) condition.Object {
	return named(name, "1", "status", map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status}}})
}

func TestLatencyFromFirstEventToState(t *testing.T) {
	c := newCourse(t, "pods", "created", "ready")
	c.beginPhase("storm")
	c.event(0, named("a", "1"))
	c.event(0, named("b", "1"))
	c.event(1, withCondition("a", "Ready", "False"))
	c.beginPhase("after")
	c.event(2, withCondition("a", "Ready", "True"))
	c.event(3, withCondition("a", "Ready", "False"))
	c.event(4, withCondition("a", "Ready", "True")) // Ready again does not count
	c.event(5, withCondition("b", "Ready", "True"))
	all := c.results(c.at(10))
	got, ok := all["storm"]
	if !ok || len(all) != 1 {
		t.Fatalf("results of the phases %v, want only the phase of the first state", all)
	}
	if got.Began != 2 || got.Latency.Count != 2 || got.Latency.Max != 5 || got.Open != 0 || got.SoFar != nil {
		t.Errorf("%+v", got)
	}
}

func TestObjectsThatDoNotGetThere(t *testing.T) {
	c := newCourse(t, "pods", "created", "ready")
	c.beginPhase("p")
	for _, name := range []string{"done", "open", "gone"} {
		c.event(0, named(name, "1"))
	}
	c.event(1, withCondition("done", "Ready", "True"))
	c.gone("uid-gone", c.at(2))
	c.gone("uid-done", c.at(3))
	got := c.results(c.at(30))["p"]
	if got.Began != 3 || got.Gone != 1 || got.Open != 1 || got.Latency.Count != 2 || got.Latency.Clamped != 1 || got.Latency.Max != 1 {
		t.Errorf("%+v", got)
	}
	if got.SoFar == nil || got.SoFar.Count != 2 || got.SoFar.Max != 30 {
		t.Errorf("unfinished transitions: %+v, want 2 with a maximum of 30 s", got.SoFar)
	}
	m := result.Measurements{Phases: []result.Phase{{Name: "p", Start: c.begin, End: c.at(30), Transitions: []result.Transition{got}}}}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

// The duration of listed objects is not measured, because they may have existed for a long time.
func TestListedObjectsAreNotMeasured(t *testing.T) {
	c := newCourse(t, "pods", "created", "ready")
	c.listed(0, named("old", "1"))
	c.event(1, withCondition("old", "Ready", "True"))
	c.event(1, named("new", "1"))
	c.listed(2, withCondition("new", "Ready", "True")) // after a lost watch; its start is known from its event
	got := c.results(c.at(10))[""]
	if got.Unmeasured != 1 || got.Began != 1 || got.Latency.Count != 1 || got.Latency.Max != 1 {
		t.Errorf("%+v", got)
	}
}

func TestLatencyBetweenTwoTests(t *testing.T) {
	c := newCourse(t, "pods", "condition=PodScheduled", "cel=object.status.phase == 'Running'")
	c.listed(0, named("old", "1")) // not scheduled yet, so its start will be an event
	c.event(1, withCondition("old", "PodScheduled", "True"))
	c.event(3, podOf("old", "2", "Running"))
	both := withCondition("both", "PodScheduled", "True")
	both["status"].(map[string]any)["phase"] = "Running"
	c.event(5, both)
	got := c.results(c.at(10))[""]
	if got.Began != 2 || got.Unmeasured != 0 || got.Latency.Count != 2 || got.Latency.Max != 2 || got.Latency.P50 != 0 {
		t.Errorf("%+v", got)
	}
}

func TestLatencyUntilDeletion(t *testing.T) {
	c := newCourse(t, "pods", "deleting", "deleted")
	c.event(0, named("a", "1"))
	dying := named("a", "2")
	dying["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	c.event(2, dying)
	c.gone("uid-a", c.at(9))
	c.event(3, named("b", "1"))
	c.gone("uid-b", c.at(4)) // no event reported its deletion
	got := c.results(c.at(10))[""]
	if got.Began != 1 || got.Latency.Count != 1 || got.Latency.Max != 7 {
		t.Errorf("%+v", got)
	}
}

func TestEndpointsOfServices(t *testing.T) {
	slice := func(service string, ready any) condition.Object {
		o := named(service+"-x", "1", "endpoints", []any{map[string]any{"conditions": map[string]any{"ready": ready}}})
		o["metadata"].(map[string]any)["labels"] = map[string]any{condition.ServiceLabel: service}
		return o
	}
	c := newCourse(t, "services", "created", "endpoints")
	c.event(0, named("web", "1"))
	c.sawSlice(slice("web", false), c.at(1))
	c.sawSlice(slice("web", true), c.at(4))
	c.sawSlice(slice("early", true), c.at(5)) // from another watch, before the Service was seen
	c.event(6, named("early", "1"))
	c.sawSlice(slice("left", true), c.at(7))
	c.sliceGone(slice("left", true))
	c.event(8, named("left", "1"))
	got := c.results(c.at(10))[""]
	if got.Began != 3 || got.Open != 1 || got.Latency.Max != 4 || got.Latency.P50 != 0 && got.Latency.P50 != 4 {
		t.Errorf("%+v", got)
	}
}

func TestSelectorOfATransition(t *testing.T) {
	c := newCourse(t, "pods", "created", "ready")
	c.Selector = labels.SelectorFromSet(labels.Set{"app": "web"})
	web := named("web", "1")
	web["metadata"].(map[string]any)["labels"] = map[string]any{"app": "web"}
	c.event(0, web)
	c.event(0, named("db", "1"))
	if got := c.results(c.at(1))[""]; got.Began != 1 || got.Open != 1 {
		t.Errorf("%+v", got)
	}
}

// External durations do not include times during which the generator was stalled.
func TestStallsAreNotExternal(t *testing.T) {
	c := newCourse(t, "pods", "created", "ready")
	c.stalled = func(at time.Time) time.Duration {
		if at.After(c.at(1)) {
			return 3 * time.Second
		}
		return 0
	}
	c.event(0, named("a", "1"))
	c.event(5, withCondition("a", "Ready", "True"))
	if got := c.results(c.at(6))[""]; got.Latency.Max != 5 || got.External.Max != 2 {
		t.Errorf("%+v", got)
	}
}
