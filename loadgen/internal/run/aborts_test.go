package run

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// A condition that holds ends the phase, and the run's error names the condition.
func TestAbortEndsThePhase(t *testing.T) {
	s := parse(t, `record: {interval: 1s}
phases: [{name: storm, for: 1h}]
abortOn: [{expr: max(etcd_server_slow_apply_total), min: 5}, {expr: max(etcd_server_slow_apply_total), max: 2}]
`)
	etcd := archivetest.NewComponent()
	etcd.Add("etcd_server_slow_apply_total", 5)
	server := httptest.NewServer(etcd)
	defer server.Close()
	r := underway(t, s)
	scrapes, err := scrape.Open(t.TempDir(), []control.ScrapeTarget{{Job: "etcd", Instance: "etcd-0", URL: server.URL}}, scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.archiver.recorder, r.phases.recorder = scrapes, scrapes
	if r.phases.aborts.stops, err = gate.Stops(plan.Of(s)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- r.phases.aborts.watch(ctx, r.archiver, cancel) }()
	err = r.phases.run(ctx)
	var aborted abortError
	if !errors.As(err, &aborted) || !strings.HasPrefix(aborted.Error(), "abortOn: expr max(etcd_server_slow_apply_total) in phase storm, ") || !strings.HasSuffix(aborted.Error(), ": 5 is over 2") {
		t.Errorf("the run ended with the error %v", err)
	}
	if len(r.phases.stamps) != 1 || !r.phases.stamps[0].Interrupted {
		t.Errorf("%+v", r.phases.stamps)
	}
	if err := errors.Join(<-watched, scrapes.Close()); err != nil {
		t.Error(err)
	}
}

// blind reports the conditions that never had data, but not the conditions that had data.
func TestConditionsWithoutDataAreTold(t *testing.T) {
	r := underway(t, parse(t, "phases: [{name: a, for: 1s}]\nabortOn: [{expr: max(up), max: 5}, {expr: max(no_such_metric), max: 5}]\n"))
	var err error
	if r.phases.aborts.stops, err = gate.Stops(plan.Of(r.o.Scenario)); err != nil {
		t.Fatal(err)
	}
	a := r.phases.aborts
	a.note(a.stops[0], "")
	a.note(a.stops[0], "the expression returns no value") // later in the run
	a.note(a.stops[1], "the expression returns no value")
	if got, want := strings.Join(a.blind(), "\n"), "abort condition expr max(no_such_metric) never had data: the expression returns no value"; got != want {
		t.Errorf("blind() = %q, want %q", got, want)
	}
}
