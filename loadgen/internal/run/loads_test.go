package run

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/kind"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestWatchesOfEndedPhaseAreNotAwaited(t *testing.T) {
	s := parse(t, "phases: [{name: p, for: 1s, load: [{kind: watches, count: 5, rate: 5/s}]}]")
	made, err := kind.Make(plan.Of(s), load.Target{Config: nowhere(), Namespace: "ns"}, "")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	close(over)
	ls := &loads{all: []*placed{{at: plan.Of(s).Loads[0], load: made[0], stop: func() {}, done: over}}}
	within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := ls.awaitOpen(within); err != nil {
		t.Error(err)
	}
}

// TestLoadsOfEveryKind runs loads of every kind in two phases. In the second phase, the watches of the first are still
// open. The load that changes their objects precedes them in the file.
func TestLoadsOfEveryKind(t *testing.T) {
	s := parse(t, `
background: [{kind: history, rate: 10/s}, {kind: custom, name: login, rate: 10/s}]
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
  load:
  - {kind: changes, name: late, watches: held, rate: 10/s}
  - {kind: streams, rate: 1/s}
  - kind: objects
    rate: 10/s
    templates: [{replicas: 20, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{.Replica}}"}}}]
`)
	for _, name := range scenario.LoadKinds() {
		if name == "replay" { // package accuracy tests replays, because they need a recording
			continue
		}
		if !slices.ContainsFunc(s.Loads(), func(l scenario.PlacedLoad) bool { return l.Kind == name }) {
			t.Errorf("no load has the kind %s", name)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		m := through(t, s)
		first, second := m.Phases[0], m.Phases[1]
		if len(first.Requests) != 2 || first.Requests[1].Load != "requests" || first.Requests[1].Succeeded < 450 || len(second.Requests) != 3 {
			t.Errorf("requests of the first phase: %+v, of the second: %+v", first.Requests, second.Requests)
		}
		if len(first.Watches) != 2 || len(second.Watches) != 1 {
			t.Errorf("watches of the first phase: %+v, of the second: %+v", first.Watches, second.Watches)
		}
		for _, p := range m.Phases { // the first watches of each phase receive the changes
			w := p.Watches[0]
			if w.Open != w.Wanted || w.Delivered < 90*int64(w.Wanted) || w.Lost != 0 {
				t.Errorf("phase %s, watches %s: %d of %d open, %d delivered, %d lost", p.Name, w.Load, w.Open, w.Wanted, w.Delivered, w.Lost)
			}
			if len(p.Changes) != 1 || p.Changes[0].Acknowledged < 90 || p.Changes[0].Acknowledged != p.Changes[0].Succeeded {
				t.Errorf("phase %s: changes %+v", p.Name, p.Changes)
			}
		}
		if custom := second.Requests[0]; custom.Load != "login" || custom.Outcomes["200"] < 45 || custom.Outcomes["429"] < 45 || custom.Unsent != 0 {
			t.Errorf("custom: %+v", custom)
		}
		if streams := second.Requests[1]; streams.Load != "streams" || streams.Outcomes["404"] < 9 { // the stub has no pods
			t.Errorf("streams to pods: %+v, want status 404", streams)
		}
		if made := second.Requests[2]; made.Load != "objects" || made.Succeeded != 20 || made.Offered != 20 || made.OfferedRate < 9 {
			t.Errorf("objects: %+v", made)
		}
		if len(m.Histories) != 1 || m.Histories[0].Linearizable != "yes" || m.Histories[0].Writes.Succeeded == 0 {
			t.Errorf("histories: %+v", m.Histories)
		}
	})
}

// logins is a custom load. Odd calls of Do read a ConfigMap, even calls return an error.
type logins struct {
	client kubernetes.Interface
	done   atomic.Int64
}

func (l *logins) Prepare(ctx context.Context, cfg *rest.Config, namespace string, _ map[string]string) (err error) {
	l.client, err = kubernetes.NewForConfig(cfg)
	return err
}

func (l *logins) Do(ctx context.Context) error {
	if l.done.Add(1)%2 == 0 {
		return apierrors.NewTooManyRequests("later", 1)
	}
	_, err := l.client.CoreV1().ConfigMaps("storm").List(ctx, metav1.ListOptions{})
	return err
}

// through runs the loads of all phases against a stub API server, and returns their measurements.
func through(t *testing.T, s *scenario.Scenario) result.Measurements {
	t.Helper()
	server, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes(), NoRecord: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ls, err := newLoads(t.Context(), plan.Of(s), load.Target{Config: server.Config(), Namespace: "storm", Namespaces: []string{"storm"}, Seed: 1, Callers: map[string]load.Caller{"login": &logins{}}}, t.TempDir(), nil, nil)
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
	if err := ls.addTo(&m); err != nil {
		t.Error(err)
	}
	return m
}

// A run judges gates on a load and a metric that the program provides.
func TestCustomLoadAndMetricAreJudged(t *testing.T) {
	server, err := stubapi.Start(stubapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	s := parse(t, `
phases: [{name: p, for: 2s, load: [{kind: custom, name: login, rate: 50/s}]}]
gates:
- {name: latency, objective: request-latency, load: login, max: 1m}
- {name: sessions, expr: sum(myapp_sessions), max: 6}
- {name: sessions-few, expr: sum(myapp_sessions), max: 8}
`)
	sessions := prometheus.NewGauge(prometheus.GaugeOpts{Name: "myapp_sessions"})
	sessions.Set(7)
	r := underwayOf(t, s, console{Progress: silent{}}, sessions)
	r.loads, err = newLoads(t.Context(), plan.Of(s), load.Target{
		Config: server.Config(), Namespace: "storm", Samples: r.samples, Stalls: r.self.Stalls(), Callers: map[string]load.Caller{"login": &logins{}},
	}, r.dir.Path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r = newRun(r.site, r.instruments, r.drivers)
	if r.info.Files, err = r.dir.writeScenario(s); err != nil {
		t.Fatal(err)
	}
	if err := r.phases.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	res := judged(t, r)
	for i, want := range []result.Verdict{result.Pass, result.Fail, result.Pass} {
		g := res.Gates[i]
		// If the generator stalled, the gate withholds the value. The value itself must still be within the bound.
		if g.Withheld != nil && *g.Withheld <= g.Bound {
			g.Verdict = result.Pass
		}
		if g.Verdict != want {
			t.Errorf("gate %s: %s, want %s: %+v", g.Name, g.Verdict, want, g)
		}
	}
}

func TestCustomLoadsNeedTheirCode(t *testing.T) {
	s := parse(t, "phases: [{name: p, for: 1s, load: [{kind: custom, name: login, rate: 1/s}]}]")
	for want, o := range map[string]Options{
		"mine.yaml:4: phases.p.load.login: load login has kind: custom, which only a Go program can send (run the scenario from a Go program that sets this load in loadgen.Options.Loads)": {},
		`Options.Loads: scenario mine has no custom load "logout"`: {Loads: map[string]load.Caller{"login": &logins{}, "logout": &logins{}}},
	} {
		o.Scenario = s
		if _, err := Run(t.Context(), o); exitcode.Of(err) != exitcode.Usage || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
