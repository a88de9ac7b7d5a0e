package run

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/kind"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestWatchesOfAPhaseThatIsOverAreNotAwaited(t *testing.T) {
	s := parse(t, "phases: [{name: p, for: 1s, load: [{kind: watches, count: 5, rate: 5/s}]}]")
	made, err := kind.Make(s, load.Target{Config: nowhere(), Namespace: "ns"}, "")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	close(over)
	ls := &loads{all: []*placed{{at: s.Loads()[0], load: made[0], stop: func() {}, done: over}}}
	within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := ls.awaitOpen(within); err != nil {
		t.Error(err)
	}
}

// Loads of every kind go through two phases, of which the second has watches that
// the first holds open and changes that stand before them in the file.
func TestLoadsOfEveryKind(t *testing.T) {
	s := parse(t, `
background: [{kind: history, rate: 10/s}]
phases:
- name: first
  for: 10s
  load:
  - {kind: changes, name: writes, watches: some, rate: 10/s}
  - {kind: requests, verb: get, rate: 50/s, objects: 5}
  - {kind: watches, name: some, count: 5, rate: 5/s}
  - {kind: watches, name: held, count: 3, rate: 5/s, hold: true}
- name: second
  for: 10s
  load: [{kind: changes, name: late, watches: held, rate: 10/s}]
`)
	for _, name := range scenario.LoadKinds() {
		if !slices.ContainsFunc(s.Loads(), func(l scenario.PlacedLoad) bool { return l.Kind == name }) {
			t.Errorf("no load here is of kind %s", name)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		m := through(t, s)
		first, second := m.Phases[0], m.Phases[1]
		if len(first.Requests) != 1 || first.Requests[0].Load != "requests" || first.Requests[0].Succeeded < 450 || len(second.Requests) != 0 {
			t.Errorf("requests: %+v, then %+v", first.Requests, second.Requests)
		}
		if len(first.Watches) != 2 || len(second.Watches) != 1 {
			t.Errorf("watches: %+v, then %+v", first.Watches, second.Watches)
		}
		for _, p := range m.Phases { // the first watches of each are those that are written to
			w := p.Watches[0]
			if w.Open != w.Wanted || w.Delivered < 90*int64(w.Wanted) || w.Lost != 0 {
				t.Errorf("phase %s, watches %s: %d of %d open, %d delivered, %d lost", p.Name, w.Load, w.Open, w.Wanted, w.Delivered, w.Lost)
			}
			if len(p.Changes) != 1 || p.Changes[0].Acknowledged < 90 || p.Changes[0].Acknowledged != p.Changes[0].Succeeded {
				t.Errorf("phase %s: changes %+v", p.Name, p.Changes)
			}
		}
		if len(m.Histories) != 1 || m.Histories[0].Linearizable != "yes" || m.Histories[0].Writes.Succeeded == 0 {
			t.Errorf("histories: %+v", m.Histories)
		}
	})
}

// through runs the loads of all phases against a stub, and gives what they saw.
func through(t *testing.T, s *scenario.Scenario) result.Measurements {
	t.Helper()
	server, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes(), NoRecord: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ls, err := newLoads(t.Context(), s, load.Target{Config: server.Config(), Namespace: "storm", Seed: 1}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var m result.Measurements
	ls.start(ls.of(""))
	for _, p := range s.Phases {
		ls.beginPhase(p.Name, time.Now())
		m.Phases = append(m.Phases, result.Phase{Name: p.Name})
		stop := ls.start(ls.of(p.Name))
		time.Sleep(p.For.D()) // virtual
		if err := ls.awaitOpen(t.Context()); err != nil {
			t.Error(err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		ls.drain(t.Context(), ls.of(p.Name))
	}
	ls.stopAll()
	ls.finish(t.Context(), t.Logf)
	ls.addTo(&m)
	return m
}
