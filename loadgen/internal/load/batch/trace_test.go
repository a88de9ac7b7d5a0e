package batch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A load of kind "objects" traces the requests that create the objects.
func TestBatchIsTraced(t *testing.T) {
	var mu sync.Mutex
	parents := map[string]bool{}
	config := stubapi.ServeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method != http.MethodPost {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, map[string]string{
				"/api": `{"kind":"APIVersions","versions":["v1"]}`, "/apis": `{"kind":"APIGroupList","groups":[]}`,
				"/api/v1": `{"resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["create"]}]}`,
			}[r.URL.Path])
			return
		}
		mu.Lock()
		parents[r.Header.Get("traceparent")] = true
		mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	}))
	s, err := scenario.Parse("shop.yaml", []byte(`
apiVersion: stormglass/v1alpha1
kind: Scenario
name: shop
phases:
  - name: fill
    for: 10s
    load: [{kind: objects, rate: 100/s, iterations: 10, templates: [{text: '{apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{.Iteration}}"}}'}]}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := s.Loads()[0]
	all, err := s.Expand(scenario.PlacedBatch{Batch: l.Batch(), Name: l.Name, Path: l.Path})
	if err != nil {
		t.Fatal(err)
	}
	tracer := spans.NewTracer(spans.Limits{Sample: 100}, 1, 1)
	pacer, err := arrival.New("constant", 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(load.Target{Config: config, Namespaces: []string{"run"}, Tracer: tracer}, *l.Load, all, pacer)
	if err != nil {
		t.Fatal(err)
	}
	b.BeginPhase("fill", time.Now())
	if err := b.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	h2test.Await(t, "all objects to be created", func() bool { _, counts := tracer.Kept(); return counts.Requests == 10 })
	cancel()
	running.Wait()
	tracer.Flush()
	kept, _ := tracer.Kept()
	if len(kept) != 10 || len(parents) != 10 {
		t.Errorf("%d traces are kept, %d different headers traceparent; want 10 each", len(kept), len(parents))
	}
	for i := range kept {
		if k := &kept[i].Request; !parents[spans.Parent(k.Trace, k.ID)] || k.Verb != "create" || k.Resource != "configmaps" {
			t.Errorf("%+v was not received", k)
		}
	}
}
