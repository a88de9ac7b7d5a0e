package ab

import (
	"cmp"
	"context"
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
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/series"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A replay ends at the first look that gives an answer.
func TestReplay(t *testing.T) {
	pairs := func(factor float64) (all []result.Pair) {
		for i := range 12 {
			a := 1 + 0.01*float64(i%3)
			all = append(all, result.Pair{
				Number: i + 1, A: result.Member{Values: map[string]float64{"calm": a}}, B: result.Member{Values: map[string]float64{"calm": a * factor * (1 + 0.01*float64(i%2))}},
			})
		}
		return all
	}
	c := result.AB{Plan: paired.Default(), Figures: []result.ABFigure{{Name: "calm", Better: "lower", Gated: true}}}
	for factor, want := range map[float64]result.Answer{1: result.NotRegressed, 1.2: result.Regressed, 0.8: result.Improved} {
		if got := Replay(c, pairs(factor)); got.Answer != want || len(got.Pairs) != 6 {
			t.Errorf("B is %v times A: %s after %d pairs, want %s after 6", factor, got.Answer, len(got.Pairs), want)
		}
	}
	if got := Replay(c, pairs(1)[:5]); got.Answer == result.Regressed || len(got.Pairs) != 5 {
		t.Errorf("too few pairs: %s after %d", got.Answer, len(got.Pairs))
	}
}

const text = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: known
seed: 7
phases: [{name: work, for: 1s}]
background: [{name: get, kind: requests, verb: get, rate: 10/s}]
compare:
  - {name: calm, objective: request-latency, spread: 3%}
  - {name: loud, objective: generator-cpu, spread: 40%}
  - {name: unknown, objective: unsent}
`

// plane simulates the runs of a comparison. The figure `calm` is about 1 and varies by spread.
type plane struct {
	rng    *rand.Rand
	spread float64
	factor float64 // multiplies the figure in B's runs
	other  func(run int) float64
	fails  func(run int) error
	runs   []string
	// better says which values of the figure are better; empty means "lower". failing makes B fail its gates.
	better  string
	failing bool
	// blind: the kernel does not report how long processes waited for a disk.
	blind bool
}

func (p *plane) ioWait() *float64 {
	if p.blind {
		return nil
	}
	return new(0.0)
}

func (p *plane) member(_ context.Context, o run.Options) (result.Result, error) {
	n := len(p.runs)
	side := filepath.Base(filepath.Dir(o.Out))
	p.runs = append(p.runs, fmt.Sprintf("%s seed %d", side, o.Scenario.Seed))
	if p.fails != nil {
		if err := p.fails(n); err != nil {
			return result.Result{}, err
		}
	}
	if err := os.MkdirAll(o.Out, 0o700); err != nil {
		return result.Result{}, err
	}
	v := 1 + p.spread*p.rng.NormFloat64()
	if side == "b" {
		v *= p.factor
	}
	machine := result.Machine{BusySeconds: 1, OwnSeconds: 1, IOWaitSeconds: p.ioWait()}
	if p.other != nil {
		machine.BusySeconds += p.other(n)
	}
	r := result.Result{Verdict: result.Pass, Figures: []result.Figure{{Name: "calm", Value: &v, Unit: "seconds", Better: cmp.Or(p.better, "lower")}, {Name: "loud", Value: new(1.0)}}}
	if p.failing && side == "b" {
		r.Verdict = result.Fail
	}
	r.Run.Host.CPUs = 2
	start := o.Scenario.Seed
	r.Measurements.Phases = []result.Phase{{Name: "work", Start: at(start), End: at(start + 10), Machine: &machine}}
	return r, nil
}

func at(seconds int64) time.Time { return time.Unix(1_700_000_000+seconds, 0) }

type quiet struct{ t *testing.T }

func (q quiet) Step(line string)    { q.t.Log(line) }
func (q quiet) Live(_ run.Snapshot) {}

func options(t *testing.T, p *plane) session {
	t.Helper()
	t.Logf("seed 1")
	p.rng = rand.New(rand.NewPCG(1, 1))
	if p.factor == 0 {
		p.factor = 1
	}
	s, err := scenario.Parse("known.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{A: Side{Scenario: s}, B: Side{Scenario: s}, Plan: paired.Default()}
	o.Out, o.Progress = filepath.Join(t.TempDir(), "ab"), quiet{t}
	return session{o: o, Series: series.Series{Member: p.member, OtherGenerator: func(result.Host, string) string { return "" }}}
}

func TestAnswersOfKnownPlanes(t *testing.T) {
	for name, c := range map[string]struct {
		plane  plane
		answer result.Answer
		code   int
		pairs  int // all pairs that ran, including the warm-up
	}{
		"the same":                       {plane{spread: 0.01}, result.NotRegressed, exitcode.Pass, 7},
		"slower":                         {plane{spread: 0.01, factor: 1.1}, result.Regressed, exitcode.Fail, 7},
		"quicker":                        {plane{spread: 0.01, factor: 0.9}, result.Improved, exitcode.Pass, 7},
		"loud":                           {plane{spread: 0.3}, result.CouldNotTell, exitcode.NoData, 13},
		"one neighbour":                  {plane{spread: 0.01, other: func(n int) float64 { return float64(n/2%3) * 4 }}, result.NotRegressed, exitcode.Pass, 19},
		"always a neighbour, and slower": {plane{spread: 0.01, factor: 1.5, other: func(int) float64 { return 9 }}, result.CouldNotTell, exitcode.NoData, 14},
	} {
		t.Run(name, func(t *testing.T) {
			got, dir, err := options(t, &c.plane).run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.Answer != c.answer || got.ExitCode != c.code || len(got.Pairs) != c.pairs {
				t.Errorf("%s (exit %d) after %d pairs, want %s (exit %d) after %d: %v %v", got.Answer, got.ExitCode, len(got.Pairs), c.answer, c.code, c.pairs, got.Reasons, got.Notes)
			}
			if read, err := Read(dir); err != nil || read.Answer != got.Answer || len(read.Pairs) != len(got.Pairs) {
				t.Errorf("ab.json says %s: %v", read.Answer, err)
			}
			for _, file := range []string{result.ABHTMLFile, result.JUnitFile} {
				if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestOrder: in each block of two pairs, each side comes first once. Both sides of a pair have the same seed.
func TestOrder(t *testing.T) {
	for seed := range int64(20) {
		for pair := 1; pair < 12; pair += 2 {
			if order(seed, pair) == order(seed, pair+1) {
				t.Errorf("seed %d: pairs %d and %d both have the order %s", seed, pair, pair+1, order(seed, pair))
			}
		}
	}
	p := plane{spread: 0.01}
	if _, _, err := options(t, &p).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(p.runs); i += 2 {
		one, other := p.runs[i], p.runs[i+1]
		if one == other || one[1:] != other[1:] || !strings.HasSuffix(one, fmt.Sprintf("seed %d", 7+i/2)) {
			t.Errorf("pair %d: %s and %s", i/2, one, other)
		}
	}
}

// TestResume: finished runs are kept when a plane dies, and are not repeated.
func TestResume(t *testing.T) {
	dead := exitcode.Environmentf("the control plane ended")
	p := plane{spread: 0.01, fails: func(n int) error {
		if n == 7 {
			return dead
		}
		return nil
	}}
	s := options(t, &p)
	first, dir, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.ExitCode != exitcode.Environment || len(first.Pairs) != 3 || !strings.Contains(strings.Join(first.Notes, "\n"), "the control plane ended") {
		t.Fatalf("exit %d, %d pairs, %v", first.ExitCode, len(first.Pairs), first.Notes)
	}
	p.fails = nil
	s.o.Resume, s.o.Out = dir, ""
	again, _, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again.Answer != result.NotRegressed || len(again.Pairs) != 7 || len(p.runs) != 16 || len(again.Notes) > 0 {
		t.Errorf("%s, %d pairs, %d runs, %v", again.Answer, len(again.Pairs), len(p.runs), again.Notes)
	}
	if !slices.EqualFunc(first.Pairs, again.Pairs[:3], func(a, b result.Pair) bool { return a.A.Values["calm"] == b.A.Values["calm"] }) {
		t.Error("the resumed comparison repeated the first pairs")
	}
	s.o.B.Spec, s.o.B.Set = []string{"nodes.count=5"}, []string{"nodes.count=5"}
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("resumed with another B: %v", err)
	}
}

// TestInterrupt: an interrupt keeps finished pairs.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	p := plane{spread: 0.01, fails: func(n int) error {
		if n == 5 {
			cancel(errors.New("interrupted"))
		}
		return nil
	}}
	c, _, err := options(t, &p).run(ctx)
	if err != nil || len(c.Pairs) != 2 || c.Answer != result.CouldNotTell || c.ExitCode != exitcode.NoData || len(c.Notes) != 1 {
		t.Errorf("%d pairs, %s, exit %d, %v: %v", len(c.Pairs), c.Answer, c.ExitCode, c.Notes, err)
	}
}

func TestWhatDecides(t *testing.T) {
	s := options(t, &plane{})
	figures, err := figuresOf(s.o, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"calm true ", "loud false it varies by 40.0% between identical runs, which is more than --spread 6.0%", "unknown false it is not known how much this metric varies between identical runs"} {
		if f := figures[i]; fmt.Sprint(f.Name, " ", f.Gated, " ", f.Advice) != want {
			t.Errorf("%s %v %s, want %s", f.Name, f.Gated, f.Advice, want)
		}
	}
	s.o.Gated = []string{"loud"}
	if figures, err = figuresOf(s.o, false); err != nil || figures[0].Name != "loud" || !figures[0].Gated || figures[1].Gated {
		t.Errorf("--metric loud: %+v, %v", figures, err)
	}
	s.o.Gated = []string{"clam"}
	if _, err = figuresOf(s.o, false); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), `did you mean "calm"`) {
		t.Errorf("--metric clam: %v", err)
	}
}

// TestAgainstABaseline: A's runs come from the baseline, and only B runs.
func TestAgainstABaseline(t *testing.T) {
	for name, c := range map[string]struct {
		factor float64
		want   result.Answer
	}{"the same": {1, result.NotRegressed}, "slower": {1.2, result.Regressed}} {
		t.Run(name, func(t *testing.T) {
			p := plane{spread: 0.01, factor: c.factor}
			s := options(t, &p)
			s.o.A.Baseline = record(t, filepath.Join(t.TempDir(), "main"), 8, text, around(1, 0.01), nil)
			got, dir, err := s.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.Answer != c.want || len(p.runs) != 7 || len(got.Sets.A) != 8 || len(got.Sets.B) != 6 {
				t.Errorf("%s after %d runs: %v", got.Answer, len(p.runs), got.Reasons)
			}
			if _, err := Read(dir); err != nil {
				t.Error(err)
			}
		})
	}
	s := options(t, &plane{})
	s.o.A.Baseline = record(t, filepath.Join(t.TempDir(), "other"), 3, strings.Replace(text, "10/s", "11/s", 1), around(1, 0.01), nil)
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("a baseline of another load: %v", err)
	}
}
