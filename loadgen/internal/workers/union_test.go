package workers

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/kind"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func parse(t *testing.T, body string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("mine.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: mine\n"+body), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sent is a request that the server received, with its time since the start of the load.
type sent struct {
	at   time.Duration
	what string
}

// requestsOf runs the loads of a scenario, divided among `of` workers, against a stub API server. It returns the
// requests with the given HTTP method, or all requests if method is "".
func requestsOf(t *testing.T, s *scenario.Scenario, method string, of int) []sent {
	t.Helper()
	server, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var all []load.Load
	for index := range of {
		made, err := kind.MakeSome(plan.Of(s), load.Target{
			Config: server.Config(), Namespace: "storm", Namespaces: []string{"storm"}, Seed: s.Seed,
			Share: load.Share{Index: index, Of: of, Run: "union"},
		}, "", kind.Divides)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range made {
			if err := l.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
	}
	before := len(server.Exchanges())
	start := time.Now().Add(time.Second)
	ctx, cancel := context.WithDeadline(t.Context(), start.Add(3*time.Second))
	defer cancel()
	var running sync.WaitGroup
	for _, l := range all {
		running.Go(func() {
			time.Sleep(time.Until(start)) // virtual
			if err := l.Run(load.StartAt(ctx, start)); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	var got []sent
	for _, e := range server.Exchanges()[before:] {
		if method != "" && e.Method != method {
			continue
		}
		got = append(got, sent{e.At.Sub(start), e.Method + " " + e.Path + "?" + e.Query})
	}
	slices.SortFunc(got, func(a, b sent) int { return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.at, b.at)) })
	return got
}

// gather is how long a dispatcher collects arrivals before it sends them.
const gather = 1100 * time.Microsecond

// Any number of workers together send the requests that a single worker would send: the same operations on the same
// objects at the same intended times.
func TestWorkersTogetherSendTheOneSchedule(t *testing.T) {
	for name, c := range map[string]struct{ method, body string }{
		"mix of operations and tenants": {"", `
phases:
- name: p
  for: 3s
  load:
  - kind: requests
    rate: 200/s
    objects: 28
    tenants: [{name: a, share: 2}, {name: b}]
    mix:
    - {verb: get, resource: configmaps, weight: 4}
    - {verb: list, resource: configmaps, weight: 1}
    - {verb: create, resource: configmaps, weight: 2}
    - {verb: update, resource: configmaps, weight: 2}
    - {verb: patch, resource: configmaps, weight: 2}
    - {verb: apply, resource: configmaps, weight: 1}
`},
		"poisson arrivals on a ramp": {"", `
phases: [{name: p, for: 3s, load: [{kind: requests, verb: get, rate: 20/s, objects: 9, arrival: poisson, shape: {kind: ramp, to: 300/s, over: 2s}}]}]`},
		"bursts": {"", `
phases: [{name: p, for: 3s, load: [{kind: requests, verb: patch, rate: 10/s, objects: 9, shape: {kind: burst, burst: 30, every: 1s}}]}]`},
		"deletes": {"DELETE", `
phases: [{name: p, for: 3s, load: [{kind: requests, verb: delete, rate: 20/s, objects: 84}]}]`},
		"objects of a batch": {"", `
phases: [{name: p, for: 3s, load: [{kind: objects, name: made, rate: 50/s, iterations: 5, templates: [{replicas: 20, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{.Iteration}}-{{.Replica}}"}}}]}]}]`},
		"changes of watched objects": {"PATCH", `
phases:
- name: p
  for: 3s
  load:
  - {kind: watches, name: crowd, count: 14, rate: 100/s, objects: 5}
  - {kind: changes, name: writes, watches: crowd, rate: 40/s}
`},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, c.body)
			var want []sent
			synctest.Test(t, func(t *testing.T) { want = requestsOf(t, s, c.method, 1) })
			if len(want) < 50 {
				t.Fatalf("one worker sent only %d requests", len(want))
			}
			for _, of := range []int{2, 3, 4, 7} {
				var got []sent
				synctest.Test(t, func(t *testing.T) { got = requestsOf(t, s, c.method, of) })
				if len(got) != len(want) {
					t.Errorf("%d workers sent %d requests, but one worker sent %d", of, len(got), len(want))
				}
				for i := range min(len(got), len(want)) {
					if got[i].what != want[i].what || (got[i].at-want[i].at).Abs() > gather {
						t.Errorf("%d workers sent %v, but one worker sent %v", of, got[i], want[i])
						break
					}
				}
			}
		})
	}
}

// Any number of workers together open each watch once.
func TestWatchesAreDivided(t *testing.T) {
	s := parse(t, `phases: [{name: p, for: 3s, load: [{kind: watches, name: crowd, count: 15, rate: 100/s, objects: 3, slow: {fraction: 0.2, bytesPerSecond: 1000}}]}]`)
	for _, of := range []int{1, 2, 3, 4, 7} {
		synctest.Test(t, func(t *testing.T) {
			server, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes()})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			var running sync.WaitGroup
			for index := range of {
				made, err := kind.Make(plan.Of(s), load.Target{Config: server.Config(), Namespace: "storm", Share: load.Share{Index: index, Of: of}}, "")
				if err != nil {
					t.Fatal(err)
				}
				if err := made[0].Prepare(ctx); err != nil {
					t.Fatal(err)
				}
				made[0].BeginPhase("p", time.Now())
				running.Go(func() {
					if err := made[0].Run(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Second) // virtual
			if open := server.OpenWatches(); open != 15 {
				t.Errorf("%d workers opened %d watches, want 15", of, open)
			}
			running.Wait()
		})
	}
}
