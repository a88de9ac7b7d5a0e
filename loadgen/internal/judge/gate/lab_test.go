package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// newLab starts one component of each kind, a second etcd member, and a component that simulates the generator.
func newLab(t *testing.T, o scrape.Options) *archivetest.Lab {
	t.Helper()
	l := archivetest.New(t, o, "etcd-0", "etcd-1", "kube-apiserver-0", "kube-scheduler-0", "kube-controller-manager-0", "loadgen")
	l.Boundary(0)
	return l
}

// base is a scenario with the phases and loads that the tests use.
const base = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: lab
nodes: {count: 10}
background:
  - {name: patch, kind: requests, verb: patch, rate: 5/s}
phases:
  - {name: calm, for: 30s, actions: [{kind: deploy, name: web, replicas: 10}]}
  - name: storm
    faults: [{kind: nodeFailure, fraction: 0.3}]
    until: nodesNotReady
    within: 2m
    load:
      - {name: crowd, kind: watches, count: 100, rate: 10/s, hold: true}
      - {name: news, kind: changes, watches: crowd, rate: 5/s}
  - {name: recovery, until: podsReady, within: 5m}
gates:
`

// parse reads the base scenario with gates.
func parse(t *testing.T, gates ...string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("lab.yaml", []byte(base+"  - "+strings.Join(gates, "\n  - ")+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compiled(t *testing.T, gates ...string) []Compiled {
	t.Helper()
	all, err := Compile(plan.Of(parse(t, gates...)))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// gateCase is a gate with its expected verdict, value and detail.
type gateCase struct {
	gate    string
	verdict result.Verdict
	value   float64
	detail  string
}

// judged judges one gate.
func judged(t *testing.T, gate string, a *archive.Archive, m result.Measurements) result.Gate {
	t.Helper()
	res, err := Judge(context.Background(), compiled(t, gate), &rundir.Recorded{Archive: a, Measurements: m})
	if err != nil {
		t.Fatal(err)
	}
	return res.Gates[0]
}

// expect compares a verdict, a part of the detail and, unless the verdict is no data, the value.
func expect(t *testing.T, what string, g result.Gate, verdict result.Verdict, value float64, detail string) {
	t.Helper()
	if g.Verdict != verdict || !strings.Contains(g.Detail, detail) {
		t.Errorf("%s: %s, %q; want %s, %q", what, g.Verdict, g.Detail, verdict, detail)
		return
	}
	switch {
	case verdict == result.NoData && g.Value != nil:
		t.Errorf("%s: value %v, although there is no data", what, *g.Value)
	case verdict != result.NoData && (g.Value == nil || !near(*g.Value, value)):
		t.Errorf("%s: value %v, want %v", what, *g.Value, value)
	}
}

func near(a, b float64) bool {
	d := a - b
	return d < 1e-4*max(1, b) && d > -1e-4*max(1, b)
}
