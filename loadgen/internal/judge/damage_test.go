package judge

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// outcome is the exit code and the message of a command.
type outcome struct {
	code   int
	said   []string // one line each
	result result.Result
}

func judged(t *testing.T, dir string) outcome {
	t.Helper()
	res, err := Judge(t.Context(), dir)
	return outcomeOf(res, err)
}

func outcomeOf(res result.Result, err error) outcome {
	if err != nil {
		return outcome{exitcode.Of(err), strings.Split(err.Error(), "\n"), res}
	}
	return outcome{res.ExitCode, res.Reasons, res}
}

func (o outcome) names(file string) bool {
	return slices.ContainsFunc(o.said, func(line string) bool { return strings.Contains(line, file) && !strings.Contains(line, "\n") })
}

// damages returns ways to damage a file, by name.
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
		"unreadable":               instead(func(path string) error { return os.Symlink("/proc/self/mem", path) }), // root can read files without permissions
		"a link to nothing":        instead(func(path string) error { return os.Symlink("gone", path) }),
	}
}

// filesOf lists the files of a run by their paths in it, without verdicts.
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

// noStalePass fails if a verdict in dir is a pass.
func noStalePass(t *testing.T, what, dir string) {
	t.Helper()
	for file, pass := range map[string]string{result.ResultFile: `"verdict": "pass",` + "\n  \"exitCode\"", result.JUnitFile: `name="verdict" value="pass"`} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err == nil && bytes.Contains(text, []byte(pass)) {
			t.Errorf("%s: %s still says pass", what, file)
		}
	}
}

// For any damage to a file in a run's directory there is no pass, no panic and no wait,
// one line names the file, and no older verdict remains.
func TestDamagedRunDoesNotPass(t *testing.T) {
	t.Parallel()
	whole := archivetest.SoundRun(t)
	if o := judged(t, whole); o.code != exitcode.Pass || len(o.result.Notes) != 0 {
		t.Fatalf("undamaged run: exit code %d, %q, notes %q", o.code, o.said, o.result.Notes)
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
			dir := archivetest.CopyDir(t, whole)
			damages()[how](t, filepath.Join(dir, file), text)
			o := judged(t, dir)
			if o.code != exitcode.NoData || !o.names(top) {
				t.Errorf("%s: exit code %d, %q", what, o.code, o.said)
			}
			noStalePass(t, what, dir)
			if how != "absent" && how != "cut in the middle" && how != "a FIFO" {
				continue // other readers read as Judge does
			}
			if by := outcomeOf(By(t.Context(), dir, []string{gates})); by.code != exitcode.NoData || !by.names(top) {
				t.Errorf("%s, by other gates: exit code %d, %q", what, by.code, by.said)
			}
			drawn := []string{result.TimelineFile, result.PulseFile, result.TSDBDir}
			if _, err := Pictures(t.Context(), dir); slices.Contains(drawn, top) && how != "absent" && (exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), top)) {
				t.Errorf("%s, its charts: %v", what, err)
			}
		}
	}
}

// A run from before digests were introduced is judged by its readable data. The damage
// that still passes is listed: only a digest would show it.
func TestDamagedRunWithoutDigests(t *testing.T) {
	t.Parallel()
	whole := archivetest.SoundRun(t)
	forget(t, whole)
	if o := judged(t, whole); o.code != exitcode.Pass || len(o.result.Notes) != 1 || !strings.Contains(o.result.Notes[0], "no checksums") {
		t.Fatalf("undamaged run: exit code %d, %q, notes %q", o.code, o.said, o.result.Notes)
	}
	passed := map[string]bool{}
	for _, file := range filesOf(t, whole) {
		text, err := os.ReadFile(filepath.Join(whole, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, how := range slices.Sorted(maps.Keys(damages())) {
			dir := archivetest.CopyDir(t, whole)
			damages()[how](t, filepath.Join(dir, file), text)
			what := filepath.Base(file) + ", " + how
			switch o := weighed(t, dir); o.code {
			case exitcode.Pass:
				passed[what] = true
			case exitcode.NoData:
			default:
				t.Errorf("%s: exit code %d, %q", what, o.code, o.said)
			}
		}
	}
	want := []string{
		// Optional files do not matter to a gate.
		"audit.json, a link to nothing", "audit.json, absent", "tombstones, a link to nothing", "tombstones, absent",
		// Only white space is lost.
		"audit.json, cut before the last byte", "scenario.yaml, cut before the last byte",
		// The damaged file is still well-formed.
		"audit.json, flipped in the middle", "measurements.json, flipped in the middle", "pulse.jsonl, cut at a line's end",
		"pulse.jsonl, cut before the last byte", "pulse.jsonl, flipped at the end", "scenario.yaml, cut at a line's end",
		// No gate reads these parts of an archive.
		"000001, doubled", "000001, flipped in the middle", "index, doubled", "index, flipped in the middle",
	}
	for what := range passed {
		if !slices.Contains(want, what) {
			t.Errorf("%s: the damaged run passes", what)
		}
	}
}

// weighed judges without a report.
func weighed(t *testing.T, dir string) outcome {
	t.Helper()
	rec, err := rundir.Open(dir)
	if err != nil {
		return outcomeOf(result.Result{}, err)
	}
	defer rec.Close()
	var gates []gate.Compiled
	if rec.Scenario != nil {
		if gates, err = gate.Compile(plan.Of(rec.Scenario)); err != nil {
			t.Fatal(err)
		}
	}
	return outcomeOf(judge(t.Context(), rec, gates))
}

// forget removes a run's digests, as in a run from before they were introduced.
func forget(t testing.TB, dir string) {
	t.Helper()
	archivetest.Change(t, filepath.Join(dir, result.RunFile), func(run map[string]any) {
		delete(run, "files")
		delete(run, "digest")
	})
}
