package ab

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// record writes the files that a comparison reads, for n runs in dir/1, dir/2 and so on.
func record(t *testing.T, dir string, n int, text string, value func(i int) float64, change func(*result.Run)) string {
	t.Helper()
	for i := range n {
		run := filepath.Join(dir, fmt.Sprint(i+1))
		if err := os.MkdirAll(run, 0o700); err != nil {
			t.Fatal(err)
		}
		v := value(i)
		r := result.Result{Schema: result.Schema, Verdict: result.Pass, Reasons: []string{}, Figures: []result.Figure{{Name: "calm", Objective: "request-latency", Value: &v, Unit: "seconds", Better: "lower"}}}
		r.Run = result.Run{ID: fmt.Sprintf("%x%d", dir, i), Scenario: "known", Started: time.Unix(1_700_000_000+int64(i), 0).UTC(), Seed: 7, Host: result.Host{CPUs: 2}, Versions: result.Versions{Kubernetes: "v1.37.1"}}
		if change != nil {
			change(&r.Run)
		}
		if err := rundir.WriteJSON(run, result.ResultFile, r); err != nil {
			t.Fatal(err)
		}
		if err := rundir.WriteInfo(run, r.Run); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(run, result.ScenarioFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func around(level, spread float64) func(int) float64 {
	rng := rand.New(rand.NewPCG(1, 1))
	return func(int) float64 { return level * (1 + spread*rng.NormFloat64()) }
}

func TestCompareRecordedRuns(t *testing.T) {
	t.Log("seed 1")
	for name, c := range map[string]struct {
		runs   int
		level  float64 // of B; A's is 1
		answer result.Answer
		detail string
	}{
		"the same":      {8, 1, result.NotRegressed, ""},
		"slower":        {8, 1.2, result.Regressed, ""},
		"quicker":       {8, 0.8, result.Improved, ""},
		"one run each":  {1, 1.5, result.CouldNotTell, "A and B have only one run each, which is too few for a test"},
		"two runs each": {2, 1.5, result.CouldNotTell, "A has 2 runs and B has 2, but each needs at least 3"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a := record(t, filepath.Join(dir, "a"), c.runs, text, around(1, 0.02), nil)
			b := record(t, filepath.Join(dir, "b"), c.runs, text, around(c.level, 0.02), func(r *result.Run) { r.Versions.Kubernetes = "v1.38.0" })
			got, err := Compare(t.Context(), paired.Default(), nil, a, b)
			if err != nil {
				t.Fatal(err)
			}
			if got.Answer != c.answer || got.Figures[0].Detail != c.detail || got.Figures[0].Unit != "seconds" {
				t.Errorf("%s: %+v", got.Answer, got.Figures[0])
			}
			if d := got.Sets.Differences; len(d) != 1 || d[0] != (result.Difference{Name: "Kubernetes", A: "v1.37.1", B: "v1.38.0"}) {
				t.Errorf("differences: %+v", d)
			}
		})
	}
}

// TestWhatIsNotComparable: runs that are not comparable are refused with an error of one line.
func TestWhatIsNotComparable(t *testing.T) {
	dir := t.TempDir()
	a := record(t, filepath.Join(dir, "a"), 1, text, around(1, 0), nil)
	more := record(t, filepath.Join(dir, "more"), 1, strings.Replace(text, "rate: 10/s", "rate: 20/s", 1), around(1, 0), nil)
	empty := filepath.Join(dir, "empty")
	pairs := filepath.Join(dir, "pairs")
	for _, d := range []string{empty, pairs} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := rundir.WriteJSON(pairs, result.ABFile, result.AB{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ b, want string }{
		"another load":      {more, "cannot be compared, because their scenarios differ in background"},
		"no runs":           {empty, "the directory contains no run"},
		"not there":         {filepath.Join(dir, "none"), "specify the directory of a run"},
		"both sides at one": {pairs, "specify one of them"},
	} {
		_, err := Compare(t.Context(), paired.Default(), nil, a, c.b)
		if exitcode.Of(err) != exitcode.Usage || !strings.Contains(fmt.Sprint(err), c.want) || strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A figure that is 0 in recorded runs has no ratio, and is judged by the difference.
func TestSetsOfZeros(t *testing.T) {
	for name, c := range map[string]struct {
		a, b   []float64
		answer result.Answer
	}{
		"none on either side": {[]float64{0, 0, 0}, []float64{0, 0, 0}, result.NotRegressed},
		"some in B":           {[]float64{0, 0, 0}, []float64{50, 51, 49}, result.Regressed},
		"none in B":           {[]float64{50, 51, 49}, []float64{0, 0, 0}, result.Improved},
		"one 0 among many":    {[]float64{5, 0, 5, 4, 5}, []float64{90, 91, 89, 90, 90}, result.Regressed},
	} {
		dir := t.TempDir()
		side := func(name string, values []float64) string {
			return record(t, filepath.Join(dir, name), len(values), text, func(i int) float64 { return values[i] }, nil)
		}
		got, err := Compare(t.Context(), paired.Default(), nil, side("a", c.a), side("b", c.b))
		if err != nil || got.Answer != c.answer || !strings.HasPrefix(got.Figures[0].Detail, "judged by the difference") {
			t.Errorf("%s: %s, %s: %v", name, got.Answer, got.Figures[0].Detail, err)
		}
	}
}

// Too few runs are reported as such even if all figures are advice.
func TestOneRunEachOfAdvice(t *testing.T) {
	dir := t.TempDir()
	advice := strings.ReplaceAll(text, ", spread: 3%", "")
	a := record(t, filepath.Join(dir, "a"), 1, advice, around(1, 0), nil)
	b := record(t, filepath.Join(dir, "b"), 1, advice, around(1, 0), nil)
	got, err := Compare(t.Context(), paired.Default(), nil, a, b)
	if err != nil || !slices.Contains(got.Reasons, "A and B have only one run each, which is too few for a test") {
		t.Errorf("%q: %v", got.Reasons, err)
	}
}

// The newest run defines the figures, and notes report those that another run lacks.
func TestFiguresOfTheNewestRun(t *testing.T) {
	dir := t.TempDir()
	older := strings.Replace(text, "  - {name: calm, objective: request-latency, spread: 3%}\n", "  - {name: gone, objective: unsent}\n", 1)
	a := record(t, filepath.Join(dir, "a"), 3, older, around(1, 0.01), nil)
	b := record(t, filepath.Join(dir, "b"), 3, text, around(1, 0.01), nil)
	got, err := Compare(t.Context(), paired.Default(), nil, a, b)
	if err != nil || got.Figures[0].Name != "calm" || got.Figures[0].Gated || got.Figures[0].Advice == "" || !slices.Contains(got.Notes, "metric gone exists only in A's scenario") || !slices.Contains(got.Notes, "metric calm exists only in B's scenario") {
		t.Errorf("%+v, %q: %v", got.Figures, got.Notes, err)
	}
}

// A comparison accepts symbolic links to runs, and a link to the directory of one side. It finds the same runs as
// without links.
func TestSetsOfLinks(t *testing.T) {
	dir := t.TempDir()
	runs := record(t, filepath.Join(dir, "runs"), 3, text, around(1, 0.02), nil)
	links := filepath.Join(dir, "links")
	if err := os.Mkdir(links, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1", "2", "3"} {
		if err := os.Symlink(filepath.Join(runs, name), filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	if set, err := readSet(t.Context(), links); err != nil || len(set) != 3 {
		t.Errorf("%d runs by links: %v", len(set), err)
	}
	pairs := filepath.Join(dir, "pairs")
	record(t, filepath.Join(pairs, "a"), 3, text, around(1, 0.02), nil)
	for from, to := range map[string]string{"1": "00", "2": "01", "3": "02"} {
		if err := os.Rename(filepath.Join(pairs, "a", from), filepath.Join(pairs, "a", to)); err != nil {
			t.Fatal(err)
		}
	}
	c := result.AB{Schema: result.ABSchema, Plan: paired.Default()}
	for i := range 3 {
		c.Pairs = append(c.Pairs, result.Pair{Number: i, Order: "AB"})
	}
	latest := filepath.Join(dir, "latest")
	if err := errors.Join(rundir.WriteJSON(pairs, result.ABFile, c), os.Symlink(filepath.Join(pairs, "a"), latest)); err != nil {
		t.Fatal(err)
	}
	if set, err := readSet(t.Context(), latest); err != nil || len(set) != 2 {
		t.Errorf("%d runs, want 2 without the warm-up run: %v", len(set), err)
	}
}

// Copies of a run count once.
func TestCopiesOfARunCountOnce(t *testing.T) {
	dir := t.TempDir()
	runs := record(t, filepath.Join(dir, "runs"), 3, text, around(1, 0.02), nil)
	kept := filepath.Join(dir, "baselines", "main")
	if _, err := SaveBaseline(t.Context(), kept, []string{runs, runs}); err != nil {
		t.Fatal(err)
	}
	if tr, err := Trend(t.Context(), []string{kept, runs}); err != nil || len(tr.Runs) != 3 || !slices.Contains(tr.Notes, "3 runs: a trend needs at least 6 to find a change") {
		t.Errorf("%d runs, %q: %v", len(tr.Runs), tr.Notes, err)
	}
	if set, err := readSet(t.Context(), dir); err != nil || len(set) != 3 {
		t.Errorf("%d runs: %v", len(set), err)
	}
}

// A damaged baseline is listed as damaged and cannot be added to. Its runs are not judged again without their
// recordings.
func TestDamagedBaseline(t *testing.T) {
	dir := t.TempDir()
	runs := record(t, filepath.Join(dir, "runs"), 3, text, around(1, 0.02), nil)
	more := record(t, filepath.Join(dir, "more"), 1, text, around(1, 0.02), nil)
	for name, damage := range map[string]func(file string) error{
		"cut": func(file string) error { return os.Truncate(file, 100) }, "gone": os.Remove,
	} {
		kept := filepath.Join(dir, name, "main")
		if _, err := SaveBaseline(t.Context(), kept, []string{runs}); err != nil {
			t.Fatal(err)
		}
		all, err := filepath.Glob(filepath.Join(kept, "*", result.ResultFile))
		if err != nil || len(all) != 3 {
			t.Fatal(all, err)
		}
		if err := damage(all[0]); err != nil {
			t.Fatal(err)
		}
		if list, err := Baselines(t.Context(), filepath.Dir(kept)); err != nil || len(list) != 1 || !strings.Contains(list[0].Damage, "remove that run") {
			t.Errorf("%s: %+v: %v", name, list, err)
		}
		if _, err := SaveBaseline(t.Context(), kept, []string{more}); err == nil || !strings.Contains(err.Error(), filepath.Dir(all[0])) {
			t.Errorf("%s: a run was added: %v", name, err)
		}
		if entries, err := os.ReadDir(filepath.Dir(all[0])); err != nil || len(entries) > 3 {
			t.Errorf("%s: the directory of the baseline has %v, want at most 3 entries: %v", name, entries, err)
		}
	}
}

// A run that was cut short cannot be saved in a baseline.
func TestBaselineOfWholeRuns(t *testing.T) {
	dir := t.TempDir()
	for why, change := range map[string]func(*result.Run){
		"interrupted": func(r *result.Run) { r.Interrupted = true }, "ended early by x": func(r *result.Run) { r.Aborted = "x" }, "environment failed": func(r *result.Run) { r.Failure = "etcd-0 died" },
		"a worker was lost": func(r *result.Run) { r.LostWorkers = []string{"1"} },
	} {
		runs := record(t, filepath.Join(dir, why), 1, text, around(1, 0), change)
		kept := filepath.Join(dir, "baselines", why)
		if _, err := SaveBaseline(t.Context(), kept, []string{runs}); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), why) || !isNew(kept) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// The id of a run becomes the name of a directory in the baseline.
func TestBaselineStaysInItsDirectory(t *testing.T) {
	dir := t.TempDir()
	runs := record(t, filepath.Join(dir, "runs"), 1, text, around(1, 0), func(r *result.Run) { r.ID = "x/../../escaped" })
	_, err := SaveBaseline(t.Context(), filepath.Join(dir, "baselines", "main"), []string{runs})
	if exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), "is not a name") || !isNew(filepath.Join(dir, "baselines")) {
		t.Errorf("%v", err)
	}
}

// A run without measured figures cannot be saved in a baseline.
func TestBaselineOfMeasuredRuns(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(record(t, filepath.Join(dir, "runs"), 1, text, around(1, 0), nil), "1")
	var r result.Result
	if err := result.ReadJSON(run, result.ResultFile, &r); err != nil {
		t.Fatal(err)
	}
	for name, figures := range map[string][]result.Figure{"no figures": nil, "no value": {{Name: "calm", Unit: "seconds"}}} {
		r.Figures = figures
		if err := rundir.WriteJSON(run, result.ResultFile, r); err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join(dir, "baselines", name)
		if _, err := SaveBaseline(t.Context(), kept, []string{run}); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "the run measured nothing") || !isNew(kept) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A baseline is not saved through a symbolic link, which may lead out of the directory of all baselines.
func TestBaselineIsNoLink(t *testing.T) {
	dir := t.TempDir()
	runs := record(t, filepath.Join(dir, "runs"), 1, text, around(1, 0), nil)
	elsewhere, link := filepath.Join(dir, "elsewhere"), filepath.Join(dir, "main")
	if err := errors.Join(os.Mkdir(elsewhere, 0o700), os.Symlink(elsewhere, link)); err != nil {
		t.Fatal(err)
	}
	_, err := SaveBaseline(t.Context(), link, []string{runs})
	written, unread := os.ReadDir(elsewhere)
	if exitcode.Of(err) != exitcode.Usage || unread != nil || len(written) > 0 {
		t.Errorf("%v, %v: %v", written, unread, err)
	}
}

// The name of a directory is printed without escape sequences.
func TestBaselinesArePrintedClean(t *testing.T) {
	var text bytes.Buffer
	if err := WriteBaselines(&text, []Baseline{{Name: "\x1b[2Jmain"}, {Name: "\u202eold", Damage: "cut"}}); err != nil || strings.ContainsAny(text.String(), "\x1b\u202e") {
		t.Errorf("%q, %v", text.String(), err)
	}
}

// TestBaseline: saved runs compare as the original runs did, and more can be added.
func TestBaseline(t *testing.T) {
	dir := t.TempDir()
	runs := record(t, filepath.Join(dir, "runs"), 4, text, around(1, 0.02), nil)
	kept := filepath.Join(dir, "baselines", "main")
	if n, err := SaveBaseline(t.Context(), kept, []string{runs}); n != 4 || err != nil {
		t.Fatalf("%d runs: %v", n, err)
	}
	other := record(t, filepath.Join(dir, "other"), 1, strings.Replace(text, "rate: 10/s", "rate: 20/s", 1), around(1, 0), nil)
	if _, err := SaveBaseline(t.Context(), kept, []string{other}); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("a run of another load was saved: %v", err)
	}
	if _, err := Compare(t.Context(), paired.Default(), nil, kept, runs); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "cannot be compared with itself") {
		t.Errorf("the runs of the baseline compared with it: %v", err)
	}
	again := record(t, filepath.Join(dir, "again"), 4, text, around(1, 0.02), nil)
	c, err := Compare(t.Context(), paired.Default(), nil, kept, again)
	if err != nil || len(c.Sets.A) != 4 || *c.Figures[0].Change != 0 {
		t.Errorf("%+v, %v", c.Figures, err)
	}
	var list, shown bytes.Buffer
	all, err := Baselines(t.Context(), filepath.Join(dir, "baselines"))
	if err := errors.Join(err, WriteBaselines(&list, all)); err != nil || !strings.Contains(list.String(), "main  known  4 runs") {
		t.Errorf("%s%v", list.String(), err)
	}
	read, err := ReadBaseline(t.Context(), kept)
	if err := errors.Join(err, WriteBaseline(&shown, read)); err != nil || strings.Count(shown.String(), "calm") != 4 {
		t.Errorf("%s%v", shown.String(), err)
	}
}
