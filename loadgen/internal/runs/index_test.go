package runs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/internal/runs/runstest"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/result"
)

func scan(t testing.TB, dir string) (*runs.Index, runs.Snapshot) {
	t.Helper()
	x, err := runs.Open([]string{dir}, []string{""})
	if err != nil {
		t.Fatal(err)
	}
	x.Scan(t.Context())
	return x, x.Snapshot()
}

func put(t testing.TB, parts ...string) {
	t.Helper()
	path, text := filepath.Join(parts[:len(parts)-1]...), parts[len(parts)-1]
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The index has the runs and comparisons of a folder and its subfolders, and names damaged and foreign directories.
func TestIndexOfAFolder(t *testing.T) {
	dir := t.TempDir()
	runstest.Write(t, dir, 3, 1, func(i int, r *result.Result, _ *string) {
		if i == 2 {
			r.Verdict, r.Reasons = result.Fail, []string{"gate mutating-latency failed"}
			r.Gates[0].Verdict, r.Gates[0].Detail = result.Fail, "worst of 3 values: storm, PATCH pods"
		}
	})
	runstest.Write(t, filepath.Join(dir, "nightly", "ab", "a"), 1, 1, nil)
	put(t, dir, "nightly", "ab", result.ABFile, `{"scenario": "ci-gate", "answer": "regressed", "exitCode": 1, "started": "2026-10-01T00:00:00Z"}`)
	put(t, dir, "capacity", result.CapacityFile, `{"scenario": "writes", "answer": "found", "started": "2026-10-02T00:00:00Z"}`)
	put(t, dir, "damaged", result.ResultFile, `{"run": {`)
	put(t, dir, "damaged", result.RunFile, `{}`)
	put(t, dir, "photos", "summer", "beach.jpg", "not a run")
	if err := os.Symlink(filepath.Join(dir, "nightly"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	_, s := scan(t, dir)
	got := map[string]string{}
	for _, e := range s.Entries {
		got[e.Path] = string(e.Kind) + ": " + e.Verdict
	}
	want := map[string]string{
		"20261001-060000-ci-gate": "run: pass", "20261002-060000-ci-gate": "run: pass", "20261003-060000-ci-gate": "run: fail",
		"nightly/ab": "A/B: regressed", "nightly/ab/a/20261001-060000-ci-gate": "run: pass", "capacity": "capacity: found", "damaged": "run: damaged",
	}
	for path, is := range want {
		if got[path] != is {
			t.Errorf("%s: %q, want %q", path, got[path], is)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d entries, want %d: %v", len(got), len(want), got)
	}
	if !slices.Equal(s.Foreign, []string{"photos"}) {
		t.Errorf("directories without a run: %q", s.Foreign)
	}
	for filter, want := range map[runs.Filter]int{
		{}:                         6, // without the run of the comparison
		{In: "nightly/ab"}:         1,
		{Text: "PATCH  Mutating"}:  1,
		{Text: "patch nothing"}:    0,
		{Verdict: "fail"}:          1,
		{Scenario: "ci-gate"}:      5,
		{Host: "another computer"}: 0,
	} {
		if n := len(filter.Select(s.Entries)); n != want {
			t.Errorf("%+v selects %d entries, want %d", filter, n, want)
		}
	}
}

// A scan notices a new run, the end of an active run, and a removed run.
func TestIndexNoticesChanges(t *testing.T) {
	dir := t.TempDir()
	all := runstest.Write(t, dir, 2, 1, nil)
	active := filepath.Join(dir, "active")
	put(t, active, result.TimelineFile, `{"time":"2026-10-05T00:00:00Z","kind":"phase-start","name":"storm"}`+"\n")
	lock, err := scratch.LockDir(active)
	if err != nil || lock == nil {
		t.Fatal(err)
	}
	defer lock.Close()
	x, s := scan(t, dir)
	if e := s.Find("active"); e == nil || e.Verdict != runs.Running || e.State != "storm" {
		t.Errorf("the active run: %+v", e)
	}
	if err := os.RemoveAll(all[0]); err != nil {
		t.Fatal(err)
	}
	put(t, active, result.ResultFile, `{"verdict": "pass", "run": {"scenario": "quick", "started": "2026-10-05T00:00:00Z"}}`)
	runs.Forget(x)
	x.Scan(t.Context())
	now := x.Snapshot()
	if e := now.Find("active"); e == nil || e.Verdict != "pass" || len(now.Entries) != 2 || now.Version == s.Version {
		t.Errorf("after the end: %+v, %d entries, version %d then %d", e, len(now.Entries), s.Version, now.Version)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	runs.Forget(x)
	x.Scan(t.Context())
	if now := x.Snapshot(); len(now.Entries) != 0 || !slices.Equal(now.Foreign, []string{filepath.Base(dir)}) {
		t.Errorf("after the folder was removed: %d entries, directories without a run: %q", len(now.Entries), now.Foreign)
	}
}

// A scan in the middle of the copy of a run does not keep what it has read.
func TestIndexReadsACopyAgain(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "copy", result.RunFile, `{}`)
	put(t, dir, "copy", result.ResultFile, `{"verdict": "pa`)
	x, s := scan(t, dir)
	if e := s.Find("copy"); e.Verdict != runs.Damaged {
		t.Fatalf("half a file: %+v", e)
	}
	put(t, dir, "copy", result.ResultFile, `{"verdict": "pass"}`) // this does not change the directory's modification time
	runs.Forget(x)
	x.Scan(t.Context())
	if e := x.Snapshot().Find("copy"); e.Verdict != "pass" {
		t.Errorf("the whole file: %+v", e)
	}
}

// A folder that is itself a comparison has the name of its directory, and contains its runs.
func TestIndexOfAComparison(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ab")
	runstest.Write(t, filepath.Join(dir, "a"), 1, 1, nil)
	put(t, dir, result.ABFile, `{"scenario": "ci-gate", "answer": "regressed"}`)
	t.Chdir(dir)
	_, s := scan(t, ".")
	if e := s.Find("ab"); e == nil || e.Kind != runs.AB || len(s.Members("ab")) != 1 || len(s.Entries) != 2 {
		t.Errorf("%+v in %d entries", e, len(s.Entries))
	}
}

// Hostile files make entries with short texts without control characters, and never a panic.
func TestIndexOfHostileFiles(t *testing.T) {
	dir := t.TempDir()
	long := `"\u001b[2J` + strings.Repeat("x", 100_000) + `"`
	put(t, dir, "a", result.ResultFile, `{"verdict": "pass\u001b[2J", "run": {"scenario": `+long+`, "id": `+long+`, "versions": {"go": `+long+`}, "files": {"scenario.yaml": `+long+`}},
		"figures": [{"name": "f", "unit": `+long+`, "better": `+long+`}], "gates": [{"name": "v", "verdict": `+long+`, "unit": `+long+`},`+strings.Repeat(`{"name":"g"},`, 5000)+`{}]}`)
	put(t, dir, "a", result.RunFile, `{}`)
	put(t, dir, "many", result.ResultFile, `{"gates": [`+strings.Repeat(`{},`, 150_000)+`{}]}`)
	put(t, dir, "many", result.RunFile, `{}`)
	put(t, dir, "b", result.ABFile, `[]`)
	put(t, dir, "c", result.RunFile, "\x00")
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "c", result.HTMLFile)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "b", result.HTMLFile), 0o600); err != nil {
		t.Fatal(err)
	}
	_, s := scan(t, dir)
	for _, e := range s.Entries {
		if text := e.SearchText(); strings.ContainsAny(text, "\x1b\x00") || len(text) > 100_000 {
			t.Errorf("%s: %d bytes of text", e.Path, len(text))
		}
		if text, err := json.Marshal(e); err != nil || strings.Contains(string(text), `\u001b`) || len(text) > 100_000 {
			t.Errorf("%s: %d bytes of JSON, %v", e.Path, len(text), err)
		}
		if f, err := e.OpenFile(result.HTMLFile); err == nil {
			f.Close()
			t.Errorf("%s: a pipe, or a link that leaves the directory, was opened", e.Path)
		}
	}
	if e := s.Find("many"); e == nil || e.Verdict != runs.Damaged || !strings.Contains(e.SearchText(), "150002 objects, but the index reads at most 100000") {
		t.Errorf("a result with many objects: %+v", e)
	}
	if len(s.Entries) != 4 {
		t.Errorf("%d entries, want 4", len(s.Entries))
	}
}

// The trend finds the run at which a gate became worse, and the differences say what changed there.
func TestTrendNamesTheChange(t *testing.T) {
	dir := t.TempDir()
	runstest.Write(t, dir, 30, 1, func(i int, r *result.Result, scenario *string) {
		if i >= 19 {
			*r.Gates[0].Value *= 1.4
			*scenario = strings.Replace(*scenario, "webhookDelay: 10ms", "webhookDelay: 25ms", 1)
		}
		if i == 5 {
			r.Run.Interrupted, r.Gates[0].Value = true, new(9.0)
		}
	})
	_, s := scan(t, dir)
	all := slices.Clone(s.Entries)
	slices.Reverse(all)
	trend := runs.Trend(all)
	if c := trend.Figures[0].Changes; trend.Figures[0].Name != "mutating-latency" || len(c) != 1 || c[0].Run != 19 {
		t.Errorf("changes of %s: %+v", trend.Figures[0].Name, c)
	}
	for _, f := range trend.Figures[1:] {
		if len(f.Changes) > 0 {
			t.Errorf("%s changed: %+v", f.Name, f.Changes)
		}
	}
	if len(trend.Notes) != 1 || !strings.Contains(trend.Notes[0], "interrupted") {
		t.Errorf("notes: %q", trend.Notes)
	}
	differs := runs.Differences(all[18:20])
	if len(differs) != 1 || differs[0].Name != "scenario: controlPlane.webhookDelay" || !slices.Equal(differs[0].Values, []string{"10ms", "25ms"}) {
		t.Errorf("differences: %+v", differs)
	}
}

// A scenario that is a link shows nothing of the file to which it leads.
func TestDifferencesKeepToTheDirectory(t *testing.T) {
	dir := t.TempDir()
	all := runstest.Write(t, filepath.Join(dir, "runs"), 2, 1, nil)
	put(t, dir, "kubeconfig", "token: secret")
	link := filepath.Join(all[1], result.ScenarioFile)
	if err := errors.Join(os.Remove(link), os.Symlink(filepath.Join(dir, "kubeconfig"), link)); err != nil {
		t.Fatal(err)
	}
	_, s := scan(t, dir)
	if differs := runs.Differences(s.Entries); strings.Contains(fmt.Sprint(differs), "secret") {
		t.Errorf("differences: %+v", differs)
	}
}

// Fields at a great depth do not fill the memory with their paths.
func TestFlattenIsBounded(t *testing.T) {
	node := any(slices.Repeat([]any{1}, 100))
	for range 1000 {
		node = map[string]any{strings.Repeat("k", 100): node}
	}
	into := map[string]string{}
	runs.Flatten(into, "deep", map[string]any{"a": 1, "b": node})
	if len(into) != 1 || into["deep.a"] != "1" {
		t.Errorf("%d fields, want 1", len(into))
	}
}

// Runs whose gates all have different names make a trend of limited size.
func TestTrendIsBounded(t *testing.T) {
	dir := t.TempDir()
	runstest.Write(t, dir, 5, 1, func(i int, r *result.Result, _ *string) {
		for j := range 100 {
			gate := r.Gates[0]
			gate.Name = fmt.Sprint(i, "-", j)
			r.Gates = append(r.Gates, gate)
		}
	})
	_, s := scan(t, dir)
	if n := len(runs.Trend(s.Entries).Figures); n != 200 {
		t.Errorf("%d metrics, want 200", n)
	}
}

// BenchmarkScan reads a folder with 5,000 runs.
func BenchmarkScan(b *testing.B) {
	dir := b.TempDir()
	runstest.Write(b, dir, 5000, 1, nil)
	for b.Loop() {
		scan(b, dir)
	}
}
