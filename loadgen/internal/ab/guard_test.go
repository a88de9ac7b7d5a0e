package ab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A comparison can be resumed only with the options it began with.
func TestResumeRefusesChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*session)
		want   string
	}{
		"settings":     {func(s *session) { s.o.B.Set = []string{"nodes.count=5"} }, "settings or revision"},
		"another load": {func(s *session) { s.o.B.Scenario.Background[0].Rate = 20 }, "the scenario"},
		"a new binary": {func(s *session) { s.o.ControlPlane = os.Args[0] }, "the controlplane binary of A has changed"},
		"another plan": {func(s *session) { s.o.Plan.Looks = []result.Look{{Pairs: 3, Alpha: 0.01}} }, "statistical settings cannot be changed"},
		"a new machine": {func(s *session) {
			s.OtherGenerator = func(h result.Host, _ string) string {
				return fmt.Sprintf("on another machine with %d processors", h.CPUs)
			}
		}, "the earlier pairs ran on another machine with 2 processors"},
		"figures": {func(s *session) { s.o.Gated = []string{"loud"} }, "the metrics that decide the answer"},
	} {
		begun := options(t, &plane{spread: 0.01, fails: func(n int) error {
			if n == 4 {
				return exitcode.EnvironmentError(errors.New("the plane died"))
			}
			return nil
		}})
		_, dir, err := begun.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again := options(t, &plane{spread: 0.01})
		again.o.Resume = dir
		c.change(&again)
		if _, _, err := again.run(t.Context()); !exitcode.IsUsage(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A resumed comparison keeps its pairs if it cannot be written.
func TestResumeOnAFullDisk(t *testing.T) {
	first := options(t, &plane{spread: 0.01})
	_, dir, err := first.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, result.ABHTMLFile)
	if err := errors.Join(os.Remove(page), os.MkdirAll(filepath.Join(page, "in-the-way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	again := options(t, &plane{spread: 0.01})
	again.o.Resume = dir
	if _, _, err := again.run(t.Context()); exitcode.Of(err) != exitcode.Environment {
		t.Errorf("%v", err)
	}
	for _, name := range []string{filepath.Join("a", "01"), result.ABFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// A resumed comparison with a baseline uses the baseline's runs from its beginning, and its own plan.
func TestResumeBesideABaseline(t *testing.T) {
	p := plane{spread: 0.01, fails: func(n int) error {
		if n == 4 {
			return exitcode.Environmentf("etcd-0 died")
		}
		return nil
	}}
	s := options(t, &p)
	s.o.Plan.Throw.Other = 0.2
	baseline := record(t, filepath.Join(t.TempDir(), "main"), 8, text, around(1, 0.01), nil)
	s.o.A.Baseline = baseline
	before, dir, err := s.run(t.Context())
	if err != nil || len(before.Pairs) != 4 {
		t.Fatalf("%d pairs: %v", len(before.Pairs), err)
	}
	record(t, filepath.Join(baseline, "later"), 3, text, around(2, 0.01), nil)
	again := options(t, &p)
	again.o.A.Baseline, again.o.Resume, again.o.Out = baseline, dir, ""
	c, _, err := again.run(t.Context())
	if err != nil || c.Answer != result.NotRegressed || len(c.Sets.A) != 8 || len(c.Sets.B) != 6 || c.Plan.Throw.Other != 0.2 {
		t.Errorf("%s of %d and %d runs: %v", c.Answer, len(c.Sets.A), len(c.Sets.B), err)
	}
}

// Each run of a baseline needs a value for each gated figure. Otherwise all of B's runs would be wasted.
func TestBaselineLacksAFigure(t *testing.T) {
	p := plane{spread: 0.01}
	s := options(t, &p)
	s.o.A.Baseline = record(t, filepath.Join(t.TempDir(), "main"), 4, strings.Replace(text, "name: calm", "name: other", 1), around(1, 0.01), nil)
	for i := range 4 {
		file := filepath.Join(s.o.A.Baseline, fmt.Sprint(i+1), result.ResultFile)
		old, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(old), `"calm"`, `"other"`, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "has no value of the metric calm, which decides the answer") || len(p.runs) > 0 {
		t.Errorf("after %d runs: %v", len(p.runs), err)
	}
}

// A figure for which higher is better keeps its sign when the comparison is resumed.
func TestResumeKeepsWhatIsBetter(t *testing.T) {
	first := options(t, &plane{spread: 0.01, factor: 0.8, better: "higher"})
	c, dir, err := first.run(t.Context())
	if err != nil || c.Answer != result.Regressed {
		t.Fatalf("%s: %v", c.Answer, err)
	}
	again := options(t, &plane{spread: 0.01, factor: 0.8, better: "higher"})
	again.o.Resume = dir
	if c, _, err = again.run(t.Context()); err != nil || c.Answer != result.Regressed {
		t.Errorf("resumed: %s: %v", c.Answer, err)
	}
}

// A run that fails its gates may have lower values because it did less. This does not count as an improvement.
func TestFailingBIsNoImprovement(t *testing.T) {
	s := options(t, &plane{spread: 0.01, factor: 0.5, failing: true})
	c, _, err := s.run(t.Context())
	if err != nil || c.Answer != result.CouldNotTell || c.ExitCode != exitcode.NoData {
		t.Errorf("%s, exit %d: %v", c.Answer, c.ExitCode, err)
	}
}

// Failures in fewer than half of B's runs do not change the answer, but are reported.
func TestFailingRunsOfBAreSaid(t *testing.T) {
	c := result.AB{Answer: result.NotRegressed, ExitCode: exitcode.Pass}
	a, b := make([]result.Member, 6), make([]result.Member, 6)
	for i := range a {
		a[i].Verdict, b[i].Verdict = result.Pass, result.Pass
	}
	b[2].Verdict = result.Fail
	checkVerdicts(&c, a, b)
	if c.Answer != result.NotRegressed || len(c.Reasons) != 1 || c.Reasons[0] != "1 of 6 runs of B did not pass, and 0 of 6 runs of A did not pass" {
		t.Errorf("%s: %q", c.Answer, c.Reasons)
	}
}

// Failures on both sides do not change the answer, but are reported. Runs without gates do not count as failures.
func TestRunsThatFailOnBothSidesAreSaid(t *testing.T) {
	for verdict, want := range map[result.Verdict]int{result.Fail: 1, result.NoData: 0} {
		c := result.AB{Answer: result.NotRegressed, ExitCode: exitcode.Pass}
		all := make([]result.Member, 6)
		for i := range all {
			all[i].Verdict = verdict
		}
		checkVerdicts(&c, all, all)
		if c.Answer != result.NotRegressed || len(c.Reasons) != want {
			t.Errorf("%s: %s: %q", verdict, c.Answer, c.Reasons)
		}
	}
}

// A run without gates never passes. It is doubtful only for another reason.
func TestDoubtfulRunsWithoutGates(t *testing.T) {
	without := []string{"there are no gates: nothing was judged"}
	fine := memberOf("a/01", result.Result{Verdict: result.NoData, Reasons: without})
	doubtful := memberOf("b/01", result.Result{Verdict: result.NoData, Reasons: append([]string{"3 of 60 scrapes were lost"}, without...)})
	c := result.AB{Answer: result.NotRegressed, ExitCode: exitcode.Pass}
	checkVerdicts(&c, []result.Member{fine, fine}, []result.Member{doubtful, doubtful})
	if c.Answer != result.CouldNotTell || len(c.Reasons) != 1 {
		t.Errorf("%s: %q", c.Answer, c.Reasons)
	}
}

// A comparison that was given up on a busy machine continues when it is resumed on a quiet one.
func TestGivenUpIsResumed(t *testing.T) {
	p := plane{spread: 0.01, other: func(int) float64 { return 10 }}
	s := options(t, &p)
	c, dir, err := s.run(t.Context())
	if err != nil || c.Answer != result.CouldNotTell || len(c.Notes) == 0 || !strings.HasPrefix(c.Notes[len(c.Notes)-1], "the comparison ended without a result") {
		t.Fatalf("%s, %q: %v", c.Answer, c.Notes, err)
	}
	p.other = nil
	s.o.Resume, s.o.Out = dir, ""
	if c, _, err = s.run(t.Context()); err != nil || c.Answer != result.NotRegressed || len(c.Notes) > 0 {
		t.Errorf("resumed: %s, %q: %v", c.Answer, c.Notes, err)
	}
}

// The note on a comparison that was given up counts the pairs discarded for each side.
func TestGivenUpNamesTheSide(t *testing.T) {
	c := result.AB{Thrown: 3, Pairs: []result.Pair{{Number: warmUp, Thrown: "A: cold"}, {Number: 1, Thrown: "B: slow"}, {Number: 2}, {Number: 3, Thrown: "A: steal"}, {Number: 4, Thrown: "B: late"}}}
	if got := givenUp(c); !strings.HasPrefix(got, "the comparison ended without a result, because too many pairs were discarded: 3, of them 1 because of A's run and 2 because of B's run; reason for the last pair: B: late") {
		t.Error(got)
	}
}

// Runs with a saturated generator, or during which other processes used the machine, are left out of a comparison.
func TestUnfitRunsAreLeftOut(t *testing.T) {
	work := func(busy float64) recorded {
		r := recorded{dir: fmt.Sprint(busy)}
		r.result.Run.Host.CPUs, r.result.Run.Cluster.Bundled = 2, true
		r.result.Measurements.Phases = []result.Phase{{Start: at(0), End: at(10), Machine: &result.Machine{BusySeconds: busy, OwnSeconds: 5}}}
		return r
	}
	saturated := work(5)
	saturated.dir, saturated.result.Measurements.Generator.Saturated = "late", []string{"timers fired late"}
	c := result.AB{Plan: paired.Default()}
	own := work(9)
	own.dir, own.result.Run.Cluster.Bundled = "of a user's cluster", false
	left := withoutUnfit(&c, []recorded{work(5), saturated, work(9), own})
	if len(left) != 2 || left[1].dir != own.dir || left[0].dir != "5" || c.Thrown != 2 || len(c.Notes) != 2 || !strings.Contains(c.Notes[1], "20.0% of the CPU time was used by other processes") {
		t.Errorf("%d left, %d thrown: %q", len(left), c.Thrown, c.Notes)
	}
}

// If the plane of the first pair dies, the logs that the error names are kept.
func TestDeadPlaneKeepsItsLogs(t *testing.T) {
	s := options(t, &plane{})
	s.Member = func(_ context.Context, o run.Options) (result.Result, error) {
		if err := os.MkdirAll(filepath.Join(o.Out, "plane", "logs"), 0o700); err != nil {
			t.Fatal(err)
		}
		return result.Result{}, exitcode.EnvironmentError(errors.New("died"))
	}
	_, _, err := s.run(t.Context())
	if exitcode.Of(err) != exitcode.Environment {
		t.Fatal(err)
	}
	if logs, _ := filepath.Glob(filepath.Join(s.o.Out, "*", "00", "plane", "logs")); len(logs) != 1 {
		t.Errorf("its logs: %v", logs)
	}
}

// With a baseline, each look has its own alpha, and no answer is given between looks.
func TestLooksBesideABaseline(t *testing.T) {
	plan := paired.Default()
	for pairs, want := range map[int]int{0: 0, 5: 0, 6: 6, 8: 6, 12: 12, 20: 12} {
		looks := reached(plan.Looks, pairs)
		if got := len(looks); want == 0 && got != 0 || want > 0 && (got != 1 || looks[0].Pairs != want) {
			t.Errorf("after %d: %v", pairs, looks)
		}
	}
	for b, answer := range map[float64]result.Answer{2: result.Regressed, 1: result.NotRegressed, 0.5: result.Improved} {
		c := result.AB{Plan: plan, A: result.Side{Baseline: "x"}, Figures: []result.ABFigure{{Name: "calm", Gated: true}}, Sets: &result.Sets{}}
		for i := range 8 {
			c.Sets.A = append(c.Sets.A, memberWith(1+0.001*float64(i)))
			c.Pairs = append(c.Pairs, result.Pair{Number: i + 1, Order: "B", B: memberWith(b + 0.001*float64(i))})
			want := result.CouldNotTell
			if i >= 5 {
				want = answer
			}
			if judgePairs(&c); c.Answer != want || i >= 5 && len(c.Sets.B) != 6 {
				t.Errorf("%v times A, after %d runs: %s of %d, want %s", b, i+1, c.Answer, len(c.Sets.B), want)
			}
		}
	}
}

func memberWith(v float64) result.Member {
	return result.Member{Verdict: result.Pass, Values: map[string]float64{"calm": v}}
}

// If only a lower bound of B's value is known, such as for a rollout that did not complete in time, the answer can be
// Regressed, but neither Improved nor NotRegressed.
func TestLowerBoundInB(t *testing.T) {
	for b, want := range map[float64]result.Answer{1: result.CouldNotTell, 0.5: result.CouldNotTell, 2: result.Regressed} {
		pairs := result.AB{Plan: paired.Default(), Figures: []result.ABFigure{{Name: "calm", Better: "lower", Gated: true}}}
		sets := pairs
		sets.Figures, sets.Sets = slices.Clone(pairs.Figures), &result.Sets{}
		for i := range 6 {
			x, y := memberWith(1+0.001*float64(i)), memberWith(b+0.001*float64(i))
			y.AtLeast = []string{"calm"}
			pairs.Pairs = append(pairs.Pairs, result.Pair{Number: i + 1, A: x, B: y})
			sets.Sets.A, sets.Sets.B = append(sets.Sets.A, x), append(sets.Sets.B, y)
		}
		judgePairs(&pairs)
		judgeSets(&sets)
		if pairs.Answer != want || sets.Answer != want {
			t.Errorf("%v times A: %s in pairs, %s in sets, want %s", b, pairs.Answer, sets.Answer, want)
		}
	}
}

// Lower values in recorded runs of B that failed do not count as an improvement.
func TestFailingSetIsNoImprovement(t *testing.T) {
	c := result.AB{Plan: paired.Default(), Figures: []result.ABFigure{{Name: "calm", Better: "lower", Gated: true}}, Sets: &result.Sets{}}
	for i := range 4 {
		b := memberWith(0.5 + 0.001*float64(i))
		b.Verdict = result.NoData
		c.Sets.A, c.Sets.B = append(c.Sets.A, memberWith(1+0.001*float64(i))), append(c.Sets.B, b)
	}
	if judgeSets(&c); c.Answer != result.CouldNotTell || c.ExitCode != exitcode.NoData {
		t.Errorf("%s, exit %d", c.Answer, c.ExitCode)
	}
}

// A run during which other work used the machine is unfit. The reason names the share and the bound.
func TestUnfitRun(t *testing.T) {
	bounds := paired.Default().Throw
	fit := func() result.Member {
		return result.Member{Seconds: 50, CPUs: 2, Machine: &result.Machine{BusySeconds: 60, OwnSeconds: 56, StealSeconds: 1, IOWaitSeconds: new(5.0)}}
	}
	for name, c := range map[string]struct {
		change func(*result.Member)
		want   string
	}{
		"alone":          {func(*result.Member) {}, ""},
		"stolen":         {func(m *result.Member) { m.Machine.StealSeconds = 3 }, "3.0% of the CPU time was taken by the hypervisor (bound 2.0%)"},
		"a neighbour":    {func(m *result.Member) { m.Machine.BusySeconds = 66 }, "10.0% of the CPU time was used by other processes (bound 5.0%)"},
		"a slow disk":    {func(m *result.Member) { m.Machine.IOWaitSeconds = new(12.5) }, "25.0% of the time, some process waited for a disk (bound 20.0%)"},
		"a client":       {func(m *result.Member) { m.Machine.BusySeconds, m.Machine.ClientSeconds = 66, new(10.0) }, ""},
		"little memory":  {func(m *result.Member) { m.Machine.MemoryWaitSeconds = new(6.0) }, "12.0% of the time, some process waited for memory (bound 10.0%)"},
		"no pressure":    {func(m *result.Member) { m.Machine.IOWaitSeconds = nil }, ""},
		"saturated":      {func(m *result.Member) { m.Unfit = []string{"it was late"} }, "it was late"},
		"nothing known":  {func(m *result.Member) { m.Machine = nil }, ""},
		"no length":      {func(m *result.Member) { m.Seconds = 0 }, ""},
		"stolen and old": {func(m *result.Member) { m.Machine.StealSeconds, m.Machine.BusySeconds = 3, 90 }, "3.0% of the CPU time was taken by the hypervisor (bound 2.0%)"},
	} {
		m := fit()
		c.change(&m)
		if got := unfit(bounds, m); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The answer does not change between two looks: a B that fails at a look still fails until the next one.
func TestNothingIsAnsweredBetweenLooks(t *testing.T) {
	c := result.AB{Plan: paired.Default(), Figures: []result.ABFigure{{Name: "calm", Gated: true}}}
	for i := range 8 {
		a, b := memberWith(1+0.001*float64(i)), memberWith(1+0.001*float64(i))
		a.Verdict, b.Verdict = result.Pass, result.Pass
		if i < 3 {
			b.Verdict = result.Fail
		}
		c.Pairs = append(c.Pairs, result.Pair{Number: i + 1, A: a, B: b})
		if judgePairs(&c); c.Answer != result.CouldNotTell || c.ExitCode != exitcode.NoData {
			t.Errorf("after %d pairs: %s, exit %d: %q", i+1, c.Answer, c.ExitCode, c.Reasons)
		}
	}
	c.Pairs = append(c.Pairs, c.Pairs[7])
	if judgePairs(&c); c.Answer != result.NotRegressed {
		t.Errorf("after 9 pairs: %s: %q", c.Answer, c.Reasons)
	}
}

// If the plane of the first pair dies, the error is one line. The component's log lines stay in the log.
func TestFirstPairThatDiedIsOneLine(t *testing.T) {
	s := options(t, &plane{})
	s.Member = func(_ context.Context, o run.Options) (result.Result, error) {
		if err := os.MkdirAll(o.Out, 0o700); err != nil {
			t.Fatal(err)
		}
		return result.Result{}, exitcode.Environmentf("etcd-0 ended; from its log, etcd-0.log:\n  panic: no room\n  goroutine 1 [running]:")
	}
	_, _, err := s.run(t.Context())
	const want = "etcd-0 ended; from its log, etcd-0.log; to continue, run the same command with `--resume "
	if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want %s", err, want)
	}
}

// Replayed arrivals are part of a scenario: a comparison cannot be resumed with other arrivals, nor compare runs with
// different ones.
func TestReplayedArrivalsAreCompared(t *testing.T) {
	arrivals := func(times string) *scenario.Scenario {
		dir := t.TempDir()
		file := filepath.Join(dir, "known.yaml")
		replay := strings.Replace(text, "rate: 10/s", "shape: {kind: replay, file: arrivals.txt}", 1)
		if err := errors.Join(os.WriteFile(file, []byte(replay), 0o600), os.WriteFile(filepath.Join(dir, "arrivals.txt"), []byte(times), 0o600)); err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Read(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, same, other := arrivals("0\n0.5\n"), arrivals("0.0\n0.50\n"), arrivals("0\n0.6\n")
	if field := unlike(first, same); field != "" {
		t.Errorf("two runs with the same arrivals differ in %s", field)
	}
	if field := unlike(first, other); field != "background" {
		t.Errorf("runs with other arrivals differ in %q", field)
	}
	p := plane{spread: 0.01, fails: func(n int) error {
		if n == 7 {
			return exitcode.Environmentf("the control plane ended")
		}
		return nil
	}}
	s := options(t, &p)
	s.o.A.Scenario, s.o.B.Scenario = first, first
	_, dir, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.o.Resume, s.o.Out = dir, ""
	s.o.A.Scenario, s.o.B.Scenario = other, other
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "have changed since the first pairs") {
		t.Errorf("resumed with other arrivals: %v", err)
	}
	s.o.A.Scenario, s.o.B.Scenario = same, same
	if got, _, err := s.run(t.Context()); err != nil || got.Answer != result.NotRegressed {
		t.Errorf("resumed with the same arrivals: %s: %v", got.Answer, err)
	}
}
