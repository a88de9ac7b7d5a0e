// Package runstest writes folders of recorded runs for tests.
package runstest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Began is the start of the first run.
var Began = time.Date(2026, 10, 1, 6, 0, 0, 0, time.UTC)

// Scenario is the scenario of the runs of Write.
const Scenario = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: ci-gate
controlPlane:
  apiServers: 1
  webhookDelay: 10ms
phases:
  - name: storm
    for: 1m
`

// Write writes n runs to folder, a day apart, and returns their directories. The values vary randomly with the given seed.
// Write calls change for each run before it writes the run. change may change the result and the scenario of run i, which
// counts from 0.
func Write(tb testing.TB, folder string, n int, seed uint64, change func(i int, r *result.Result, scenario *string)) (dirs []string) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		started := Began.AddDate(0, 0, i)
		r := Result(rng, started)
		text := Scenario
		if change != nil {
			change(i, &r, &text)
		}
		dir := filepath.Join(folder, started.Format("20060102-150405")+"-"+r.Run.Scenario)
		Put(tb, dir, r, text)
		dirs = append(dirs, dir)
	}
	return dirs
}

// Result returns the result of a run with random values: its gate mutating-latency is 40 ms ± 2%, and its metric
// apiserver-cpu is 30 s ± 2%.
func Result(rng *rand.Rand, started time.Time) result.Result {
	about := func(v float64) *float64 { return new(v * (1 + 0.02*rng.NormFloat64())) }
	phase := result.Phase{Name: "storm", Start: started, End: started.Add(time.Minute), Machine: &result.Machine{BusySeconds: 60, OwnSeconds: 58, Processors: 2}}
	return result.Result{
		Schema: result.Schema, Verdict: result.Pass,
		Run: result.Run{
			ID: fmt.Sprintf("%010x", started.Unix()), Scenario: "ci-gate", Started: started, Ended: started.Add(70 * time.Second), Seed: 1,
			Cluster:  result.Cluster{Bundled: true, Name: "bundled"},
			Versions: result.Versions{Stormglass: "v0.9.0", Kubernetes: "v1.37.1", Etcd: "3.7.0", Go: "go1.26.8"},
			Host:     result.Host{OS: "linux/amd64", Kernel: "6.18", CPUs: 2, CPUModel: "AMD EPYC", MemoryBytes: 8 << 30},
		},
		Measurements: result.Measurements{Phases: []result.Phase{phase}},
		Gates: []result.Gate{
			{Name: "mutating-latency", Objective: "mutating-latency", Over: []string{"storm"}, Verdict: result.Pass, Value: about(0.040), Bound: 0.1, Op: "<=", Unit: "seconds"},
			{Name: "readonly-latency", Objective: "readonly-latency", Over: []string{"storm"}, Verdict: result.Pass, Value: about(0.008), Bound: 0.1, Op: "<=", Unit: "seconds"},
		},
		Figures: []result.Figure{{Name: "apiserver-cpu", Objective: "cpu", Value: about(30), Unit: "seconds", Better: "lower"}},
	}
}

// Latest returns the result of a run that is later than the first thousand runs of Write.
func Latest() result.Result { return Result(rand.New(rand.NewPCG(1, 1)), Began.AddDate(3, 0, 0)) }

// Put writes a run with the files run.json, result.json, scenario.yaml and report.html to dir.
func Put(tb testing.TB, dir string, r result.Result, scenario string) {
	tb.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := rundir.WriteInfo(dir, r.Run); err != nil {
		tb.Fatal(err)
	}
	page := "<!DOCTYPE html><title>report</title><main><h1>Report of " + strings.ReplaceAll(r.Run.Scenario, "<", "&lt;") + "</h1></main>"
	for name, text := range map[string][]byte{result.ResultFile: text, result.ScenarioFile: []byte(scenario), result.HTMLFile: []byte(page)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}
