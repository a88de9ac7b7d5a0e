package judge

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// For any content of a run's file, judging returns a verdict or an error of one line. It
// does not pass unless the original run passes.

func FuzzMeasurements(f *testing.F) { fuzzFile(f, result.MeasurementsFile) }
func FuzzTimeline(f *testing.F)     { fuzzFile(f, result.TimelineFile) }
func FuzzPulse(f *testing.F)        { fuzzFile(f, result.PulseFile) }
func FuzzRun(f *testing.F)          { fuzzFile(f, result.RunFile) }
func FuzzAudit(f *testing.F)        { fuzzFile(f, result.AuditFile) }

// fuzzFile fuzzes one file of a run without digests: with digests a changed file would
// not be used.
func fuzzFile(f *testing.F, file string) {
	dir := archivetest.SoundRun(f)
	forget(f, dir)
	path := filepath.Join(dir, file)
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(bytes.ReplaceAll(text, []byte("00"), []byte("-9")))
	f.Add(bytes.ReplaceAll(text, []byte(`"2027`), []byte(`"0001`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		render(t, dir, false)
	})
}

// FuzzRunDirectory fuzzes any file of a run with digests. Only the unchanged run passes.
func FuzzRunDirectory(f *testing.F) {
	dir := archivetest.SoundRun(f)
	var files []string
	sound := map[string][]byte{}
	for _, file := range filesOf(f, dir) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			f.Fatal(err)
		}
		files, sound[file] = append(files, file), text
		f.Add(uint8(len(files)-1), text)
	}
	slices.Sort(files)
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		file := files[int(which)%len(files)]
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		passed := render(t, dir, true)
		if passed != bytes.Equal(text, sound[file]) {
			t.Errorf("%s changed: passed is %v", file, passed)
		}
		if err := os.WriteFile(path, sound[file], 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

// render judges the run in dir, draws its report, and reports whether it passes.
func render(t *testing.T, dir string, digested bool) bool {
	t.Helper()
	rec, err := rundir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
	}()
	var gates []gate.Compiled
	if rec.Scenario != nil {
		if gates, err = gate.Compile(plan.Of(rec.Scenario)); err != nil && !digested {
			t.Fatal(err)
		}
	}
	res, err := judge(t.Context(), rec, gates)
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range []func(io.Writer) error{
		func(w io.Writer) error { return report.JSON(w, res) },
		func(w io.Writer) error { return report.JUnit(w, res) },
		func(w io.Writer) error { return report.Summary(w, res) },
		func(w io.Writer) error { return report.Terminal(w, res, report.TerminalOptions{}) },
		func(w io.Writer) error {
			return report.HTML(t.Context(), w, res, rec.Timeline, rec.Slots, rec.ScenarioText, nil)
		},
	} {
		if err := write(io.Discard); err != nil {
			t.Error(err)
		}
	}
	passed := res.Verdict == result.Pass
	if passed != (res.ExitCode == exitcode.Pass) {
		t.Errorf("verdict %s, exit code %d", res.Verdict, res.ExitCode)
	}
	return passed
}
