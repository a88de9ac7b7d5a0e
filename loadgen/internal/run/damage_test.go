package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/judge/breakdown"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/record"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

const soundScenario = `
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

// soundRun is the directory of a run that passes. It has every file that judging reads.
func soundRun(t testing.TB) string {
	t.Helper()
	return soundVariant(t, "")
}

// soundVariant is soundRun of a variant.
func soundVariant(t testing.TB, variant string) string {
	t.Helper()
	l := archivetest.New(t, record.Options{}, "etcd-0", "kube-apiserver-0")
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
		{Time: phases[0].Start, Kind: "phase-start", Name: "calm"}, {Time: phases[0].End, Kind: "phase-end", Name: "calm"},
		{Time: phases[1].Start, Kind: "phase-start", Name: "storm"},
		{Time: begin, Kind: "fault-begin", Name: "pause", Fault: "1", On: []string{"etcd-0"}},
		{Time: begin.Add(5 * time.Second), Kind: "fault-end", Name: "pause", Fault: "1"},
		{Time: phases[1].End, Kind: "phase-end", Name: "storm"},
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
	audit := breakdown.Audit{Files: 1, Events: 300, Classes: []breakdown.AuditClass{{Phase: "calm", Verb: "get", Resource: "configmaps", Server: phases[0].Requests[0].Latency}}}
	if err := audit.Save(l.Dir()); err != nil {
		t.Fatal(err)
	}
	run := result.Run{ID: "ab12", Scenario: "sound", Variant: variant, Started: phases[0].Start.Add(-time.Minute), Ended: phases[1].End.Add(time.Minute), Cluster: result.Cluster{Bundled: true}}
	return l.RunDir(soundScenario, run, result.Measurements{
		Phases: phases, Generator: result.Generator{MaxRSSBytes: 1e8}, Scrapes: result.Scrapes{Done: 12},
	}, timeline...)
}

// outcome is what a command would exit with and say.
type outcome struct {
	code   int
	said   []string // a line each
	result result.Result
}

func judged(t *testing.T, dir string) outcome {
	t.Helper()
	res, err := Judge(t.Context(), dir)
	return outcomeOf(res, err)
}

func outcomeOf(res result.Result, err error) outcome {
	if err != nil {
		return outcome{ExitCode(err), strings.Split(err.Error(), "\n"), res}
	}
	return outcome{res.ExitCode, res.Reasons, res}
}

func (o outcome) names(file string) bool {
	return slices.ContainsFunc(o.said, func(line string) bool { return strings.Contains(line, file) && !strings.Contains(line, "\n") })
}

// damages are the ways in which a file is damaged, by name.
func damages() map[string]func(t *testing.T, path string, text []byte) {
	with := func(change func(text []byte) []byte) func(*testing.T, string, []byte) {
		return func(t *testing.T, path string, text []byte) {
			t.Helper()
			if err := os.WriteFile(path, change(bytes.Clone(text)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	instead := func(make func(path string) error) func(*testing.T, string, []byte) {
		return func(t *testing.T, path string, _ []byte) {
			t.Helper()
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := make(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(at func(n int) int) func(*testing.T, string, []byte) {
		return with(func(text []byte) []byte { text[at(len(text))] ^= 4; return text })
	}
	return map[string]func(*testing.T, string, []byte){
		"absent":                   instead(func(string) error { return nil }),
		"empty":                    with(func([]byte) []byte { return nil }),
		"zeros":                    with(func(text []byte) []byte { return make([]byte, len(text)) }),
		"cut after a byte":         with(func(text []byte) []byte { return text[:1] }),
		"cut inside a line":        with(func(text []byte) []byte { return text[:max(bytes.IndexByte(text, '\n')/2, 1)] }),
		"cut at a line's end":      with(func(text []byte) []byte { return text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1] }),
		"cut in the middle":        with(func(text []byte) []byte { return text[:len(text)/2] }),
		"cut before the last byte": with(func(text []byte) []byte { return text[:len(text)-1] }),
		"flipped at the start":     flip(func(int) int { return 0 }),
		"flipped in the middle":    flip(func(n int) int { return n / 2 }),
		"flipped at the end":       flip(func(n int) int { return n - 1 }),
		"doubled":                  with(func(text []byte) []byte { return append(text, text...) }),
		"huge":                     instead(func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)) }),
		"a directory":              instead(func(path string) error { return os.Mkdir(path, 0o700) }),
		"a FIFO":                   instead(func(path string) error { return syscall.Mkfifo(path, 0o600) }),
		"a loop of links":          instead(func(path string) error { return os.Symlink(filepath.Base(path), path) }),
		"a link to /dev/zero":      instead(func(path string) error { return os.Symlink("/dev/zero", path) }),
		"unreadable":               instead(func(path string) error { return os.Symlink("/proc/self/mem", path) }), // root may read what has no permissions
		"a link to nothing":        instead(func(path string) error { return os.Symlink("gone", path) }),
	}
}

// filesOf are the files of a run by their path in it, verdicts left out.
func filesOf(t testing.TB, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !slices.Contains([]string{result.ResultFile, result.JUnitFile, result.HTMLFile}, d.Name()) {
			files = append(files, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// noStalePass fails if a verdict in dir is a pass.
func noStalePass(t *testing.T, what, dir string) {
	t.Helper()
	for file, pass := range map[string]string{result.ResultFile: `"verdict": "pass",` + "\n  \"exitCode\"", result.JUnitFile: `name="verdict" value="pass"`} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err == nil && bytes.Contains(text, []byte(pass)) {
			t.Errorf("%s: %s still says pass", what, file)
		}
	}
}

// Whatever is damaged in a run's directory, and however: no pass, no panic, no wait,
// the file named in one line, and no older verdict left.
func TestADamagedRunDoesNotPass(t *testing.T) {
	t.Parallel()
	whole := soundRun(t)
	if o := judged(t, whole); o.code != ExitPass || len(o.result.Notes) != 0 {
		t.Fatalf("the run itself: exit code %d, %q, notes %q", o.code, o.said, o.result.Notes)
	}
	files := filesOf(t, whole)
	if len(files) != 10 {
		t.Fatalf("the run has %q", files)
	}
	gates := written(t, "gates.yaml", "gates:\n  - {name: open, expr: 'max(process_open_fds{job=\"kube-apiserver\"})', max: 42}\n")
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(whole, file))
		if err != nil {
			t.Fatal(err)
		}
		top, _, _ := strings.Cut(file, "/")
		for _, how := range slices.Sorted(maps.Keys(damages())) {
			what := file + ", " + how
			dir := copyOf(t, whole)
			damages()[how](t, filepath.Join(dir, file), text)
			o := judged(t, dir)
			if o.code != ExitNoData || !o.names(top) {
				t.Errorf("%s: exit code %d, %q", what, o.code, o.said)
			}
			noStalePass(t, what, dir)
			if how != "absent" && how != "cut in the middle" && how != "a FIFO" {
				continue // other readers read as Judge does
			}
			if by := outcomeOf(JudgeBy(t.Context(), dir, []string{gates})); by.code != ExitNoData || !by.names(top) {
				t.Errorf("%s, by other gates: exit code %d, %q", what, by.code, by.said)
			}
			drawn := []string{result.TimelineFile, result.PulseFile, result.TSDBDir}
			if _, err := Pictures(t.Context(), dir); slices.Contains(drawn, top) && how != "absent" && (ExitCode(err) != ExitNoData || !strings.Contains(err.Error(), top)) {
				t.Errorf("%s, its charts: %v", what, err)
			}
		}
	}
}

// A run of before the digests is judged by what can be read of it. What still passes
// is listed: damage that nothing tells but a digest.
func TestADamagedRunWithoutDigests(t *testing.T) {
	t.Parallel()
	whole := soundRun(t)
	forget(t, whole)
	if o := judged(t, whole); o.code != ExitPass || len(o.result.Notes) != 1 || !strings.Contains(o.result.Notes[0], "not recorded") {
		t.Fatalf("the run itself: exit code %d, %q, notes %q", o.code, o.said, o.result.Notes)
	}
	passed := map[string]bool{}
	for _, file := range filesOf(t, whole) {
		text, err := os.ReadFile(filepath.Join(whole, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, how := range slices.Sorted(maps.Keys(damages())) {
			dir := copyOf(t, whole)
			damages()[how](t, filepath.Join(dir, file), text)
			what := filepath.Base(file) + ", " + how
			switch o := weighed(t, dir); o.code {
			case ExitPass:
				passed[what] = true
			case ExitNoData:
			default:
				t.Errorf("%s: exit code %d, %q", what, o.code, o.said)
			}
		}
	}
	want := []string{
		// Nobody need have written it: of no weight for a gate.
		"audit.json, a link to nothing", "audit.json, absent", "tombstones, a link to nothing", "tombstones, absent",
		// Only white space is lost.
		"audit.json, cut before the last byte", "scenario.yaml, cut before the last byte",
		// What is left is whole in its form.
		"audit.json, flipped in the middle", "measurements.json, flipped in the middle", "pulse.jsonl, cut at a line's end",
		"pulse.jsonl, cut before the last byte", "pulse.jsonl, flipped at the end", "scenario.yaml, cut at a line's end",
		// Of an archive, what no gate reads.
		"000001, doubled", "000001, flipped in the middle", "index, doubled", "index, flipped in the middle",
	}
	for what := range passed {
		if !slices.Contains(want, what) {
			t.Errorf("%s: it passes", what)
		}
	}
}

// weighed is judged without a report.
func weighed(t *testing.T, dir string) outcome {
	t.Helper()
	rec, err := rundir.Open(dir)
	if err != nil {
		return outcomeOf(result.Result{}, err)
	}
	defer rec.Close()
	var gates []gate.Compiled
	if rec.Scenario != nil {
		if gates, err = gate.Compile(rec.Scenario); err != nil {
			t.Fatal(err)
		}
	}
	return outcomeOf(judgeBy(t.Context(), rec, gates))
}

// forget makes a run one of before the digests.
func forget(t testing.TB, dir string) {
	t.Helper()
	change(t, filepath.Join(dir, result.RunFile), func(run map[string]any) {
		delete(run, "files")
		delete(run, "digest")
	})
}

// change rewrites a file of JSON.
func change(t testing.TB, path string, how func(map[string]any)) {
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
