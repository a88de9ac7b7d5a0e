package run

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/spans"
)

// The run directory of a killed run contains the traces of the first phase, also if the spans came from a file.
func TestTracesAreSavedDuringTheRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "spans.jsonl")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		tail, err := spans.OpenTail(file)
		if err != nil {
			t.Fatal(err)
		}
		defer tail.Close()
		x := &tracing{tracer: spans.NewTracer(spans.Limits{}, 1, 1), file: tail}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- x.run(ctx, dir) }()
		due := time.Now().UnixNano()
		r := spans.Request{Trace: spans.TraceID{1}, ID: spans.ID{1}, Load: "l", Verb: "get", Resource: "pods", Due: due, Sent: due, Last: due + 1000}
		x.tracer.Ended(r, time.Now())
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := spans.WriteOTLP(f, []spans.Span{{Trace: r.Trace, ID: spans.ID{2}, Parent: r.ID, Process: "kube-apiserver-0", Name: "GET", Start: due, End: due + 500}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(saveEvery*followInterval + time.Millisecond)
		if _, all, err := spans.Read(dir); err != nil || len(all) != 1 || len(all[0].Spans) != 1 {
			t.Errorf("%d traces, %v", len(all), err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Requests of the teardown belong to no phase.
func TestTracesOfTheTeardown(t *testing.T) {
	r := underway(t, parse(t, calm))
	r.phases.tracer = spans.NewTracer(spans.Limits{}, 1, 1)
	r.phases.tracer.BeginPhase("storm", time.Now().Add(-time.Second))
	r.tearDown()
	due := time.Now().UnixNano()
	r.phases.tracer.Ended(spans.Request{Trace: spans.TraceID{1}, ID: spans.ID{1}, Load: "l", Due: due, Sent: due, Last: due}, time.Now())
	r.phases.tracer.Flush()
	if all, _ := r.phases.tracer.Kept(); len(all) != 1 || all[0].Phase != "" {
		t.Errorf("kept %+v", all)
	}
}

func TestRunWithoutTracing(t *testing.T) {
	var x *tracing
	x.settle(t.Context())
	if err := x.run(t.Context(), ""); err != nil || x.save("") != nil || x.close() != nil || x.warnings() != nil || x.sampler() != nil {
		t.Error("a run without tracing does something")
	}
}
