package run

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// ofThings is a load on a resource that the API server serves only after the time `from`.
type ofThings struct {
	load.Plain
	from time.Time
	ran  atomic.Int64
}

func (l *ofThings) Prepare(context.Context) error {
	if time.Now().Before(l.from) {
		return &object.UnknownError{Resource: "things.example.com"}
	}
	return nil
}

func (l *ofThings) Run(ctx context.Context) error {
	l.ran.Add(1)
	<-ctx.Done()
	return nil
}

func (l *ofThings) BeginPhase(string, time.Time) {}
func (l *ofThings) AddTo(*result.Measurements)   {}
func (l *ofThings) Live() load.Live              { return load.Live{} }

func lateLoads(l *ofThings, defined bool) *loads {
	changes := &ofThings{}
	named := func(name, of string, l load.Load) *placed {
		return &placed{at: plan.Load{PlacedLoad: scenario.PlacedLoad{Load: &scenario.Load{Name: name, Watches: of}, Phase: "applied", Path: "phases[1].load[0]"}}, load: l, ready: make(chan struct{})}
	}
	return &loads{
		all:          []*placed{named("informers", "", l), named("news", "informers", changes)},
		hurry:        make(chan struct{}),
		definesLater: func(resource string) bool { return defined && resource == "things.example.com" },
	}
}

// A load waits for its resource if an action of its phase defines the resource.
func TestLoadWaitsForItsResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ofThings{from: time.Now().Add(5 * time.Second)}
		ls := lateLoads(l, true)
		if err := ls.prepare(t.Context()); err != nil {
			t.Fatalf("prepare fails before the action defines the resource: %v", err)
		}
		changes := ls.all[1].load.(*ofThings)
		stop := ls.start(ls.of("applied"))
		time.Sleep(4 * time.Second)
		if l.ran.Load() != 0 || changes.ran.Load() != 0 {
			t.Error("the load ran before the API server served its resource")
		}
		time.Sleep(2 * time.Second)
		if l.ran.Load() != 1 || changes.ran.Load() != 1 {
			t.Errorf("1 s after the API server began to serve the resource, the load had run %d times, the changes of its objects %d", l.ran.Load(), changes.ran.Load())
		}
		if err := stop(); err != nil || len(ls.unserved()) > 0 {
			t.Errorf("%v, %q", err, ls.unserved())
		}
	})
}

// If the API server never serves a load's resource, the load fails, but not the run.
func TestResourceThatIsNeverServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := lateLoads(&ofThings{from: time.Now().Add(time.Hour)}, true)
		if err := ls.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop := ls.start(ls.of("applied"))
		time.Sleep(servedWithin + time.Second)
		if err := stop(); err != nil {
			t.Errorf("stop returned an error: %v", err)
		}
		told := strings.Join(ls.unserved(), "\n")
		if !strings.Contains(told, "load informers (phases[1].load[0]) sent nothing, because the API server did not serve its resource for 2m0s") || !strings.Contains(told, "things.example.com") {
			t.Errorf("the message of the load is %q", told)
		}
	})
}

// If nothing in the scenario defines a resource, prepare returns an error before the first phase.
func TestUnknownResourceEndsTheRunAtOnce(t *testing.T) {
	err := lateLoads(&ofThings{from: time.Now().Add(time.Hour)}, false).prepare(t.Context())
	if exitcode.Of(err) != exitcode.Environment || !errors.Is(err, ErrPrepare) {
		t.Errorf("got %v", err)
	}
}
