package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func peakOf(t *testing.T, load string) Peak {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: x\nphases: [{name: a, for: 5m, load: ["+load+"]}]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return Of(s).Highest
}

func TestPeakOfALoad(t *testing.T) {
	for load, want := range map[string]float64{
		"{kind: requests, verb: get, rate: 50/s}":                                                       50,
		"{kind: requests, verb: get, rate: 50/s, arrival: poisson}":                                     50,
		"{kind: requests, verb: get, rate: 50/s, shape: {kind: ramp, to: 80/s, over: 1m}}":              80,
		"{kind: requests, verb: get, rate: 50/s, shape: {kind: ramp, to: 10/s, over: 1m}}":              50,
		"{kind: requests, verb: get, rate: 50/s, shape: {kind: step, to: 200/s, steps: 3, every: 10s}}": 200,
		"{kind: requests, verb: get, rate: 50/s, shape: {kind: sine, amplitude: 0.5, every: 1m}}":       75,
		"{kind: requests, verb: get, rate: 50/s, shape: {kind: burst, burst: 100, every: 10s}}":         150,
		"{kind: requests, verb: get, rate: 50/s, shape: {kind: burst, burst: 10, every: 100ms}}":        150,
		"{kind: history}": 20,
		"{name: w, kind: watches, count: 100, rate: 30/s}": 30,
		"{name: w, kind: watches, count: 10, rate: 30/s}":  10,
		"{kind: requests, verb: get, rate: 5/s}, {name: w, kind: watches, count: 9, rate: 9/s}, {kind: changes, watches: w, rate: 2/s}": 16,
	} {
		if got := peakOf(t, load).Most(); got != want {
			t.Errorf("%s: %v/s, want %v", load, got, want)
		}
	}
}

// For a replay of a file, the peak is the busiest second at the replay's speed.
func TestPeakOfAReplay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "times"), []byte("0\n0.5\n0.9\n1.2\n3\n3.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for speed, want := range map[string]float64{"1": 3, "2": 4, "0.5": 2} {
		file := filepath.Join(dir, "x.yaml")
		text := "apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: x\nphases: [{name: a, for: 5m, load: [{kind: requests, verb: get, shape: {kind: replay, file: times, speed: " + speed + "}}]}]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Read(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := Of(s).Highest.Most(); got != want {
			t.Errorf("at speed %s: %v/s, want %v", speed, got, want)
		}
	}
}

func TestRateOverTheMostIsRefused(t *testing.T) {
	s, err := scenario.Parse("mine.yaml", []byte(`apiVersion: stormglass/v1alpha1
kind: Scenario
name: x
background: [{kind: requests, name: calm, verb: get, rate: 5/s}]
phases:
  - {name: a, for: 1m}
  - {name: b, for: 1m, load: [{kind: requests, name: storm, verb: get, rate: 100/s, shape: {kind: ramp, to: 400/s, over: 1m}}]}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Of(s).CheckRate(405); err != nil {
		t.Error(err)
	}
	err = Of(s).CheckRate(404)
	want := "mine.yaml:7: phases.b.load[0]: the loads of phase b send up to 405 requests/s (storm 400/s, calm 5/s), but --max-rate is 404/s (lower the rates with --set, or raise --max-rate)"
	if err == nil || strings.ReplaceAll(err.Error(), "load.storm", "load[0]") != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// The preview of a load agrees with its definition.
func TestSharesOfALoad(t *testing.T) {
	s, err := scenario.Parse("x.yaml", []byte(`apiVersion: stormglass/v1alpha1
kind: Scenario
name: x
phases:
  - name: a
    for: 10s
    load:
      - {kind: requests, name: mixed, rate: 40/s, objects: 10, size: 2KiB, mix: [{verb: get, weight: 3}, {verb: update, weight: 1}]}
      - {kind: watches, name: w, count: 20, rate: 10/s}
      - {kind: changes, watches: w, rate: 3/s}
      - {kind: objects, rate: 10/s, templates: [{replicas: 7, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{.Replica}}"}}}]}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]Share{
		"mixed":   {{Verb: "get", Resource: "configmaps", Part: 0.75, Answered: 2048}, {Verb: "update", Resource: "configmaps", Part: 0.25, Sent: 2048, Answered: 2048}},
		"w":       {{Verb: "watch", Resource: "configmaps", Part: 1, Answered: 1024}},
		"changes": {{Verb: "patch", Resource: "configmaps", Part: 1, Sent: 1024, Answered: 1024}},
		"objects": {{Verb: "create", Resource: "configmaps", Part: 1}},
	}
	totals := map[string]int64{"mixed": 400, "w": 20, "changes": 30, "objects": 7}
	certainties := map[string]Certainty{"mixed": About, "changes": About} // all watches are open after 2s
	p := Of(s)
	for _, l := range p.Loads {
		got := p.Shares(l)
		if len(got) != len(want[l.Name]) {
			t.Errorf("%s: %+v, want %+v", l.Name, got, want[l.Name])
			continue
		}
		for i, share := range got {
			if share != want[l.Name][i] {
				t.Errorf("%s: %+v, want %+v", l.Name, share, want[l.Name][i])
			}
		}
		if n, how := p.Arrivals(l); how != certainties[l.Name] || n != totals[l.Name] {
			t.Errorf("%s: %s %d arrivals, want %s %d", l.Name, how, n, certainties[l.Name], totals[l.Name])
		}
	}
}
