package prune

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/result"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// Plan selects runs that meet all criteria, and removes the oldest first.
func TestPlan(t *testing.T) {
	unit := func(name, scenario string, days, bytes int, verdict result.Verdict, labels map[string]string) Found {
		return Found{
			Folder: "runs", Name: name, Kind: Run, Scenario: scenario, Started: now.Add(-time.Duration(days) * day), Bytes: int64(bytes),
			Verdicts: []string{string(verdict)}, Labels: labels, contents: contents{runs: []reducible{{metrics: int64(bytes) - 1}}},
		}
	}
	all := []Found{
		unit("new", "x", 1, 100, result.Pass, nil),
		unit("failed", "x", 10, 100, result.Fail, map[string]string{"team": "core", "a": "b"}),
		unit("old", "x", 40, 100, result.Pass, map[string]string{"team": "core"}),
		unit("oldest", "y", 50, 100, result.Fail, nil),
		{Folder: "runs", Name: "active", Kind: Run, Scenario: "x", Started: now, Bytes: 100, Alone: "it is active"},
		{Folder: "runs", Name: "notes.txt", Bytes: 1, Alone: "not a run"},
	}
	for name, c := range map[string]struct {
		Criteria
		want []string
	}{
		"older":                {Criteria{OlderThan: 30 * day}, []string{"oldest", "old"}},
		"newest per scenario":  {Criteria{Keep: 1}, []string{"old", "failed"}},
		"keeps enough":         {Criteria{Keep: 3}, nil},
		"older, but keep some": {Criteria{OlderThan: 30 * day, Keep: 1}, nil},
		"size":                 {Criteria{MaxSize: 301}, []string{"oldest", "old"}},
		"size fits":            {Criteria{MaxSize: 501}, nil},
		"size, keep":           {Criteria{MaxSize: 1, Keep: 1}, []string{"old", "failed"}},
		"verdict":              {Criteria{Verdicts: []string{"fail", Interrupted}}, []string{"oldest", "failed"}},
		"verdict, keep":        {Criteria{Verdicts: []string{"pass"}, Keep: 1}, []string{"old"}},
		"label":                {Criteria{Labels: map[string]string{"team": "core"}}, []string{"old", "failed"}},
		"labels":               {Criteria{Labels: map[string]string{"team": "core", "a": "b"}}, []string{"failed"}},
		"reduce to a size":     {Criteria{Reduce: true, MaxSize: 402}, []string{"oldest"}},
		"downsample to a size": {Criteria{Downsample: time.Minute, MaxSize: 402}, []string{"oldest"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range Plan(all, c.Criteria, now) {
				switch {
				case d.Why == "":
					t.Errorf("%s: %s without a reason", d.Name, d.Action)
				case d.Action == (&planner{Criteria: c.Criteria}).action():
					got = append(got, d.Name)
				case d.Frees != 0:
					t.Errorf("%s: %s, but frees %d bytes", d.Name, d.Action, d.Frees)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("removes %q, want %q", got, c.want)
			}
		})
	}
}

// folder is a folder of runs in a test.
type folder struct {
	*testing.T
	dir string
}

func (f folder) write(name, text string) {
	f.Helper()
	path := filepath.Join(f.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		f.Fatal(err)
	}
}

// run writes a run that was not judged.
func (f folder) run(name string) {
	f.Helper()
	f.write(name+"/timeline.jsonl", "")
	f.write(name+"/controlplane/logs/etcd-0.log", "started\n")
	run := result.Run{ID: "ab12", Scenario: "x", Started: now.Add(-40 * day), Ended: now.Add(-40 * day).Add(time.Minute)}
	if err := rundir.WriteInfo(filepath.Join(f.dir, name), run); err != nil {
		f.Fatal(err)
	}
}

func (f folder) link(to, name string) {
	f.Helper()
	if err := os.Symlink(to, filepath.Join(f.dir, name)); err != nil {
		f.Fatal(err)
	}
}

func (f folder) lock(name string) {
	f.Helper()
	lock, err := scratch.LockDir(filepath.Join(f.dir, name))
	if err != nil || lock == nil {
		f.Fatalf("lock %s: %v", name, err)
	}
	f.Cleanup(func() { lock.Close() })
}

// comparison writes a comparison of the variants "one" and "two".
func (f folder) comparison(name string) {
	f.Helper()
	f.run(name + "/one")
	f.run(name + "/two")
	c := result.Comparison{Schema: result.ComparisonSchema, Scenario: "x", Started: now.Add(-40 * day), Ended: now, Variants: []result.Variant{{Name: "one"}, {Name: "two"}}}
	if err := rundir.WriteJSON(filepath.Join(f.dir, name), result.ComparisonFile, c); err != nil {
		f.Fatal(err)
	}
}

func (f folder) scan() []Found {
	f.Helper()
	all, err := Scan([]string{f.dir, f.dir + "/"})
	if err != nil {
		f.Fatal(err)
	}
	return all
}

func (f folder) names() (names []string) {
	f.Helper()
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Only whole, inactive runs of this program are removed. Everything else is left alone, with a reason.
func TestOnlyWholeRunsAreRemoved(t *testing.T) {
	outside, f := folder{t, t.TempDir()}, folder{t, t.TempDir()}
	outside.run("theirs")

	f.run("run")
	f.comparison("comparison")
	f.run("search/trial-01")
	f.write("search/capacity.json", `{"scenario": "x", "field": "nodes.count", "from": 1, "to": 2, "started": "2026-01-01T00:00:00Z"}`)
	f.run("ab/a/01")
	f.run("ab/b/01")
	f.write("ab/ab.json", `{"scenario": "x", "started": "2026-01-01T00:00:00Z", "plan": {"looks": [{"pairs": 6, "alpha": 0.01}]}}`)
	f.write(".pruned-earlier/tsdb/x", "half of a run")

	alone := map[string]string{}
	add := func(name, why string, make func(name string)) {
		alone[name] = why
		make(name)
	}
	add("notes.txt", "it is a file", func(name string) { f.write(name, "hi") })
	add(".pruned-file", "it is a file", func(name string) { f.write(name, "hi") })
	add("mine", "it has no run.json", func(name string) { f.write(name+"/a", "hi") })
	add("link", "symbolic link", func(name string) { f.link(filepath.Join(outside.dir, "theirs"), name) })
	add(".pruned-link", "symbolic link", func(name string) { f.link(outside.dir, name) })
	add("damaged", "run.json is damaged", func(name string) { f.run(name); f.write(name+"/run.json", "{") })
	add("started", "run.json is missing", func(name string) { f.write(name+"/timeline.jsonl", "") })
	add("noted", "noted/notes.txt", func(name string) { f.run(name); f.write(name+"/notes.txt", "hi") })
	add("linked", "linked/controlplane/x", func(name string) { f.run(name); f.link(outside.dir, name+"/controlplane/x") })
	add("active", "it is active", func(name string) { f.run(name); f.lock(name) })
	add("baseline", "a run of a baseline", func(name string) {
		f.run(name)
		archivetest.Must(t, errors.Join(os.Remove(filepath.Join(f.dir, name, "timeline.jsonl")), os.RemoveAll(filepath.Join(f.dir, name, "controlplane"))))
	})
	add("left", "`loadgen cleanup`", func(name string) { f.run(name); f.write(name+"/created.jsonl", "{}\n") })
	add("comparison-active", "it is active", func(name string) { f.comparison(name); f.lock(name + "/two") })
	add("comparison-noted", "comparison-noted/two/notes.txt", func(name string) { f.comparison(name); f.write(name+"/two/notes.txt", "hi") })
	add("comparison-moved", "comparison-moved/other", func(name string) { f.comparison(name); f.run(name + "/other") })
	add("side", "one side of a comparison", func(name string) {
		f.write(name+"/capacity.json", `{"scenario": "x", "field": "nodes.count", "from": 1, "to": 2, "inTurns": true, "started": "2026-01-01T00:00:00Z"}`)
	})
	add("comparison-damaged", "comparison.json is damaged", func(name string) { f.comparison(name); f.write(name+"/comparison.json", "{}") })

	decisions := Plan(f.scan(), Criteria{OlderThan: 30 * day}, now)
	if err := Apply(t.Context(), decisions, now); err != nil {
		t.Fatal(err)
	}
	if got, want := f.names(), slices.Sorted(maps.Keys(alone)); !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	for _, d := range decisions {
		if why, ok := alone[d.Name]; ok != (d.Action == LeaveAlone) || !strings.Contains(d.Why, why) {
			t.Errorf("%s: %s: %s, want %q", d.Name, d.Action, d.Why, why)
		}
	}
	if _, err := os.Stat(filepath.Join(outside.dir, "theirs/controlplane/logs/etcd-0.log")); err != nil {
		t.Error(err)
	}
}

// A run that changed after the scan is left alone. After an interrupt, nothing more is removed.
func TestLateChangesCount(t *testing.T) {
	f := folder{t, t.TempDir()}
	f.run("noted")
	f.run("resumed")
	f.run("replaced")
	decisions := Plan(f.scan(), Criteria{OlderThan: 30 * day}, now)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Apply(ended, decisions, now); !errors.Is(err, context.Canceled) || len(f.names()) != 3 {
		t.Errorf("after an interrupt: %q, %v", f.names(), err)
	}
	f.write("noted/notes.txt", "hi")
	f.lock("resumed")
	archivetest.Must(t, os.Rename(filepath.Join(f.dir, "replaced"), filepath.Join(f.dir, "moved")))
	f.link("moved", "replaced")
	err := Apply(t.Context(), decisions, now)
	if want := []string{"moved", "noted", "replaced", "resumed"}; !slices.Equal(f.names(), want) {
		t.Errorf("left %q, want %q", f.names(), want)
	}
	if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "replaced is a symbolic link") {
		t.Errorf("error %v", err)
	}
}

// Neither the run of a comparison nor a comparison is accepted as a folder of runs.
func TestFoldersOfRunsOnly(t *testing.T) {
	f := folder{t, t.TempDir()}
	f.run("run")
	f.comparison("comparison")
	f.write("pair/ab.json", "{}")
	f.write("pair/a/01/run.json", "{}")
	f.link("comparison", "link")
	for name, why := range map[string]string{
		"run": "is itself a run", "comparison": "is itself", "comparison/one": "is itself", "pair": "is itself", "pair/a": "contains runs of the comparison",
		"link": "is a symbolic link", "link/": "is a symbolic link", "run/run.json": "is not a directory", "none": "no such file",
	} {
		if _, err := Scan([]string{f.dir + "/" + name}); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: error %v, want %q", name, err, why)
		}
	}
}

// A reduced run keeps its results, and cannot be judged again. A reduction that was interrupted is finished.
func TestReduce(t *testing.T) {
	f := folder{t, t.TempDir()}
	dir := f.sound("sound")
	f.run("unjudged")
	before, err := os.ReadFile(filepath.Join(dir, result.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	reduce := func() map[string]Decision {
		t.Helper()
		decisions := Plan(f.scan(), Criteria{Verdicts: []string{"pass", NotJudged}, Reduce: true}, now)
		if err := Apply(t.Context(), decisions, now); err != nil {
			t.Fatal(err)
		}
		of := map[string]Decision{}
		for _, d := range decisions {
			of[d.Name] = d
		}
		return of
	}
	done := reduce()
	if d := done["sound"]; d.Action != Reduce || d.Frees == 0 || d.Frees >= d.Bytes {
		t.Errorf("%s, frees %d of %d bytes", d.Action, d.Frees, d.Bytes)
	}
	if d := done["unjudged"]; d.Action != Keep {
		t.Errorf("a run without results: %s, %s", d.Action, d.Why)
	}
	if _, err := os.Stat(filepath.Join(dir, result.TSDBDir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the metrics remain: %v", err)
	}
	_, err = judge.Judge(t.Context(), dir)
	if exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), "the run was reduced to its results on 2026-11-30: `loadgen prune --reduce` removed controlplane, tsdb") {
		t.Errorf("judge again: %v", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, result.ResultFile)); err != nil || string(after) != string(before) {
		t.Errorf("result.json changed: %v", err)
	}
	f.write("sound/tsdb/x", "half of the metrics")
	if d := reduce()["sound"]; d.Action != LeaveAlone || !strings.Contains(d.Why, "sound/tsdb/x") {
		t.Errorf("a foreign file in the metrics: %s, %s", d.Action, d.Why)
	}
	archivetest.Must(t, os.Remove(filepath.Join(dir, "tsdb/x")))
	f.write("sound/controlplane/x", "half of the control plane")
	if d := reduce()["sound"]; d.Action != Reduce {
		t.Errorf("after an interruption: %s, %s", d.Action, d.Why)
	}
	if d := reduce()["sound"]; d.Action != Keep {
		t.Errorf("a reduced run: %s, %s", d.Action, d.Why)
	}
}
