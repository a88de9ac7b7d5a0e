package run

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
)

// During a pause, no load of any kind has arrivals. After the pause, schedules continue where they stopped, without a
// burst.
func TestPauseStopsLoadsOfEveryKind(t *testing.T) {
	s := parse(t, `
background: [{kind: history, rate: 10/s}, {kind: custom, name: login, rate: 10/s}]
phases:
- name: p
  for: 1m
  load:
  - {kind: changes, name: writes, watches: some, rate: 10/s}
  - {kind: requests, verb: get, rate: 50/s, objects: 5}
  - {kind: watches, name: some, count: 30, rate: 1/s}
  - {kind: streams, rate: 5/s}
  - kind: objects
    rate: 10/s
    templates: [{replicas: 200, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{.Replica}}"}}}]
`)
	synctest.Test(t, func(t *testing.T) {
		server, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes(), NoRecord: true})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		pause := load.NewPause()
		ls, err := newLoads(t.Context(), plan.Of(s), load.Target{
			Config: server.Config(), Namespace: "storm", Namespaces: []string{"storm"}, Seed: 1, Pause: pause, Callers: map[string]load.Caller{"login": &logins{}},
		}, t.TempDir(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		ls.beginPhase("p", time.Now())
		ls.start(ls.of(""))
		stop := ls.start(ls.of("p"))
		arrivals := func() map[string]int64 {
			m := result.Measurements{Phases: []result.Phase{{Name: "p"}}}
			if err := ls.addTo(&m); err != nil {
				t.Fatal(err)
			}
			all := map[string]int64{}
			for _, r := range m.Phases[0].Requests {
				all[r.Load] += r.Offered
			}
			all["writes"] = m.Phases[0].Changes[0].Offered
			all["some"] = int64(m.Phases[0].Watches[0].Open)
			return all
		}
		time.Sleep(10 * time.Second)
		pause.Begin(time.Now())
		time.Sleep(time.Second) // until the requests in flight have finished
		before := arrivals()
		time.Sleep(20 * time.Second)
		within := arrivals()
		pause.End(time.Now())
		time.Sleep(10 * time.Second)
		after := arrivals()
		for name, rate := range map[string]int64{"writes": 10, "requests": 50, "some": 1, "streams": 5, "objects": 10, "login": 10} {
			if before[name] < 9*rate || within[name] != before[name] {
				t.Errorf("load %s: %d arrivals before the pause, but %d at its end", name, before[name], within[name])
			}
			if got := after[name] - within[name]; got < 9*rate || got > 10*rate+2 {
				t.Errorf("load %s: %d arrivals in the 10 s after the pause, want about %d/s", name, got, rate)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		ls.stopAll()
		ls.finish(t.Context(), t.Logf)
		var m result.Measurements
		if err := ls.addTo(&m); err != nil {
			t.Error(err)
		}
		// The load ran for 20 s at 10/s; with the pause it took 31 s. It did not make up for the operations that it
		// missed.
		if h := m.Histories[0]; h.Linearizable != "yes" || h.Skipped > 20 {
			t.Errorf("history: %+v", h)
		}
	})
}
