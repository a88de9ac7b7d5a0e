package prune

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/runmetrics"
	"github.com/stormglass/stormglass/loadgen/result"
)

// sound writes a judged run that passes, and returns its directory.
func (f folder) sound(name string) string {
	f.Helper()
	dir := filepath.Join(f.dir, name)
	archivetest.Must(f.T, os.CopyFS(dir, os.DirFS(archivetest.SoundRun(f))))
	if _, err := judge.Judge(f.Context(), dir); err != nil {
		f.Fatal(err)
	}
	f.write(name+"/controlplane/logs/etcd-0.log", "started\n")
	return dir
}

// prune returns the decision about the only entry.
func (f folder) prune(c Criteria) Decision {
	f.Helper()
	decisions := Plan(f.scan(), c, now)
	if err := Apply(f.Context(), decisions, now); err != nil || len(decisions) != 1 {
		f.Fatalf("%d decisions: %v", len(decisions), err)
	}
	return decisions[0]
}

// every returns the interval of the metrics of a run that can be queried.
func (f folder) every(dir string) time.Duration {
	f.Helper()
	r, err := runmetrics.Open(f.Context(), dir)
	if err != nil {
		f.Fatal(err)
	}
	defer r.Close()
	a, err := r.Ask(f.Context(), runmetrics.Query{Expr: "process_open_fds", From: r.Start, To: r.End, Range: true})
	if err != nil || len(a.Series) != 2 || r.End.Sub(r.Start) != 121*time.Second {
		f.Fatalf("%d series over %s: %v", len(a.Series), r.End.Sub(r.Start), err)
	}
	return r.Interval
}

func downsampleTo(interval time.Duration) Criteria {
	return Criteria{Verdicts: []string{"pass"}, Downsample: interval}
}

// A downsampled run has coarse metrics that can be queried, but not judged. It is never downsampled to a finer interval.
func TestDownsample(t *testing.T) {
	f := folder{t, t.TempDir()}
	dir := f.sound("sound")
	before, err := os.ReadFile(filepath.Join(dir, result.ResultFile))
	archivetest.Must(t, err)
	if d := Plan(f.scan(), downsampleTo(40*time.Second), now)[0]; d.Action != Downsample || d.Frees == 0 || d.Frees >= d.Bytes {
		t.Errorf("%s, frees at most %d of %d bytes", d.Action, d.Frees, d.Bytes)
	}
	for _, c := range []struct {
		interval, want time.Duration
		action         Action
	}{
		{5 * time.Second, 5 * time.Second, Keep}, // the scrape interval
		{40 * time.Second, 40 * time.Second, Downsample},
		{40 * time.Second, 40 * time.Second, Keep},
		{30 * time.Second, 40 * time.Second, Keep},
		{2 * time.Minute, 2 * time.Minute, Downsample},
	} {
		if d := f.prune(downsampleTo(c.interval)); d.Action != c.action || d.Coarse != (c.action == Keep) {
			t.Errorf("to %s: %s, %s", c.interval, d.Action, d.Why)
		}
		if every := f.every(dir); every != c.want {
			t.Errorf("to %s: one sample per %s", c.interval, every)
		}
	}
	for name, judged := range map[string]func() error{
		"report": func() error { _, err := judge.Judge(t.Context(), dir); return err },
		"gate":   func() error { _, err := judge.By(t.Context(), dir, nil); return err },
	} {
		want := "the run was downsampled on 2026-11-30: `loadgen prune --downsample 2m` removed controlplane, all but one sample per 2m (result.json and report.html still show"
		if err := judged(); exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after, err := os.ReadFile(filepath.Join(dir, result.ResultFile)); err != nil || string(after) != string(before) {
		t.Errorf("result.json changed: %v", err)
	}
	if all, err := judge.Pictures(t.Context(), dir); err != nil || len(all) == 0 {
		t.Errorf("%d charts: %v", len(all), err)
	}
	r, err := runmetrics.Open(t.Context(), dir)
	archivetest.Must(t, err)
	if _, err := r.Ask(t.Context(), runmetrics.Query{Expr: "ALERTS", To: r.End}); exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), "rules are not evaluated on downsampled metrics") {
		t.Errorf("alerts on downsampled metrics: %v", err)
	}
	archivetest.Must(t, r.Close())

	files, err := result.FilesBelow(dir, result.TSDBDir)
	archivetest.Must(t, err)
	archivetest.Must(t, os.WriteFile(filepath.Join(dir, files[0]), []byte("changed"), 0o600))
	if _, err := runmetrics.Open(t.Context(), dir); exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("changed metrics: %v", err)
	}
	if d := f.prune(downsampleTo(time.Hour)); d.Action != LeaveAlone || !strings.Contains(d.Why, "its metrics cannot be downsampled: ") || !strings.Contains(d.Why, "SHA-256") {
		t.Errorf("changed metrics: %s, %s", d.Action, d.Why)
	}
	if d := f.prune(Criteria{Verdicts: []string{"pass"}, Reduce: true}); d.Action != Reduce {
		t.Errorf("reduce a downsampled run: %s, %s", d.Action, d.Why)
	}
	if _, err := runmetrics.Open(t.Context(), dir); !strings.Contains(err.Error(), "`loadgen prune --reduce` removed controlplane, tsdb") {
		t.Errorf("a reduced run: %v", err)
	}
}

// After an interruption, the run either has its old metrics, or the next prune finishes, even if it selects other runs.
func TestInterruptedDownsample(t *testing.T) {
	for _, first := range []time.Duration{0, 40 * time.Second} { // downsampled earlier
		f := folder{t, t.TempDir()}
		dir, unlike := f.sound("sound"), Criteria{Verdicts: []string{"fail"}}
		if first > 0 {
			f.prune(downsampleTo(first))
		}
		old := archivetest.CopyDir(t, dir)
		f.prune(downsampleTo(2 * time.Minute))
		done := archivetest.CopyDir(t, dir)
		at := func(name string) string { return filepath.Join(dir, name) }
		copyFrom := func(from, part, to string) {
			archivetest.Must(t, os.CopyFS(at(to), os.DirFS(filepath.Join(from, part))))
		}
		restore := func(from string) {
			archivetest.Must(t, errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(from))))
		}
		swapped := func() { // everything is recorded, nothing is removed
			restore(old)
			copyFrom(done, "tsdb", ".downsampled/tsdb")
			data, err := os.ReadFile(filepath.Join(done, result.ReducedFile))
			archivetest.Must(t, errors.Join(err, os.WriteFile(at(result.ReducedFile), data, 0o600)))
		}
		files, err := result.FilesBelow(old, result.TSDBDir)
		archivetest.Must(t, err)
		was := max(first, 5*time.Second)
		for name, c := range map[string]struct {
			leave func()
			want  time.Duration
			valid bool // the metrics can be read before the next prune
		}{
			"before the first block": {func() {
				restore(old)
				f.write("sound/.downsampled/tsdb/x.tmp-for-creation/index", "half")
			}, was, true},
			"before reduced.json is written": {func() {
				restore(old)
				copyFrom(done, "tsdb", ".downsampled/tsdb")
				f.write("sound/.reduced.json-0", "{")
			}, was, true},
			"before parts are removed": {swapped, 2 * time.Minute, false},
			"while the old metrics are removed": {func() {
				swapped()
				archivetest.Must(t, errors.Join(os.RemoveAll(at("controlplane")), os.Remove(at(files[0]))))
			}, 2 * time.Minute, false},
			"before the new metrics are moved": {func() {
				swapped()
				archivetest.Must(t, os.RemoveAll(at("tsdb")))
			}, 2 * time.Minute, false},
			"after the new metrics were moved": {func() {
				restore(done)
				archivetest.Must(t, os.Mkdir(at(".downsampled"), 0o700))
			}, 2 * time.Minute, true},
		} {
			c.leave()
			if _, err := runmetrics.Open(t.Context(), dir); (err == nil) != c.valid {
				t.Errorf("%s: %v", name, err)
			}
			if d := f.prune(unlike); d.Action != Resume || d.Why != "an interrupted prune left it" {
				t.Errorf("%s: %s, %s", name, d.Action, d.Why)
			}
			if every := f.every(dir); every != c.want {
				t.Errorf("%s: one sample per %s", name, every)
			}
			for part, gone := range map[string]bool{".downsampled": true, "controlplane": c.want > was || first > 0} {
				if _, err := os.Stat(at(part)); (err != nil) != gone {
					t.Errorf("%s: %s: %v", name, part, err)
				}
			}
			if d := f.prune(unlike); d.Action != Keep {
				t.Errorf("%s, then: %s, %s", name, d.Action, d.Why)
			}
			c.leave()
			if d := f.prune(downsampleTo(2 * time.Minute)); d.Action != Downsample && d.Action != Resume {
				t.Errorf("%s, downsample again: %s, %s", name, d.Action, d.Why)
			}
			if every := f.every(dir); every != 2*time.Minute {
				t.Errorf("%s, downsample again: one sample per %s", name, every)
			}
		}
	}
}
