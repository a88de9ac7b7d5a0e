package archivetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/auditsummary"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// SoundScenario is the scenario of the run that SoundRun returns.
const SoundScenario = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: sound
controlPlane: {apiServer: {audit: metadata}}
background:
  - {name: reads, kind: requests, verb: get, resource: configmaps, objects: 10, rate: 5/s}
phases:
  - {name: calm, for: 1m}
  - name: storm
    for: 1m
    faults: [{kind: pause, component: etcd-0, after: 10s, for: 5s}]
gates:
  - {name: open, expr: 'max(process_open_fds{job="kube-apiserver"})', max: 42}
  - {name: reads, objective: request-latency, max: 1s}
  - {name: felt, objective: error-window, max: 10s, over: [storm]}
  - {name: memory, objective: generator-memory, max: 1GB}
`

// SoundRun returns the directory of a run that passes its gates. It contains every file that judging reads.
func SoundRun(t testing.TB) string {
	t.Helper()
	return SoundVariant(t, "")
}

// SoundVariant is like SoundRun, but the run is of the given variant.
func SoundVariant(t testing.TB, variant string) string {
	t.Helper()
	l := New(t, scrape.Options{}, "etcd-0", "kube-apiserver-0")
	var phases []result.Phase
	for _, name := range []string{"calm", "storm"} {
		p := l.Phase(name, nil)
		p.Requests = []result.Requests{{
			Load: "reads", Verb: "get", Resource: "configmaps", Offered: 300, Sent: 300, Succeeded: 299, Outcomes: map[string]int64{"200": 299, "503": 1},
			OfferedRate: 5, AchievedRate: 5, Latency: result.Latency{Count: 300, Mean: 0.02, P50: 0.02, P90: 0.03, P99: 0.04, P999: 0.05, Max: 0.05},
		}}
		phases = append(phases, p)
	}
	begin := phases[1].Start.Add(10 * time.Second)
	timeline := []result.Event{
		{Time: phases[0].Start, Kind: result.EventPhaseStart, Name: "calm"}, {Time: phases[0].End, Kind: result.EventPhaseEnd, Name: "calm"},
		{Time: phases[1].Start, Kind: result.EventPhaseStart, Name: "storm"},
		{Time: begin, Kind: result.EventFaultBegin, Name: "pause", Fault: "1", On: []string{"etcd-0"}},
		{Time: begin.Add(5 * time.Second), Kind: result.EventFaultEnd, Name: "pause", Fault: "1"},
		{Time: phases[1].End, Kind: result.EventPhaseEnd, Name: "storm"},
	}
	var lines []byte
	for at := phases[0].Start; at.Before(phases[1].End); at = at.Add(time.Second) {
		slot := samples.RequestSlot{Succeeded: 5, Slowest: 0.02}
		if at.Sub(begin).Abs() < 2*time.Second {
			slot.Failed = map[string]int64{"503": 1}
		}
		line, err := json.Marshal(samples.Slot{Begin: at.UnixMilli(), Millis: 1000, Requests: map[string]samples.RequestSlot{"reads": slot}})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.WriteFile(filepath.Join(l.Dir(), result.PulseFile), lines, 0o600); err != nil {
		t.Fatal(err)
	}
	log := auditsummary.Audit{Files: 1, Events: 300, Classes: []auditsummary.Class{{Phase: "calm", Verb: "get", Resource: "configmaps", Server: phases[0].Requests[0].Latency}}}
	if err := rundir.WriteJSON(l.Dir(), result.AuditFile, log); err != nil {
		t.Fatal(err)
	}
	run := result.Run{ID: "ab12", Scenario: "sound", Variant: variant, Started: phases[0].Start.Add(-time.Minute), Ended: phases[1].End.Add(time.Minute), Cluster: result.Cluster{Bundled: true}}
	return l.RunDir(SoundScenario, run, result.Measurements{
		Phases: phases, Generator: result.Generator{MaxRSSBytes: 1e8}, Scrapes: result.Scrapes{Done: 12},
	}, timeline...)
}

// CopyDir returns a copy of a directory.
func CopyDir(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// Change decodes a JSON file, calls `how`, which modifies the object, and writes the object back.
func Change(t testing.TB, path string, how func(map[string]any)) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	how(v)
	if text, err = json.MarshalIndent(v, "", "  "); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// At returns the value at a path of keys (string) and indexes (int) in a decoded JSON value.
func At(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

// Must fails the test if err is not nil.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
