package ab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge/paired"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestSideIsABinary(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "controlplane")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	read := func([]string) (*scenario.Scenario, error) { return &scenario.Scenario{}, nil }
	s, err := NewSide(t.Context(), "--b", []string{binary}, nil, read, func(string) {})
	if err != nil || s.ControlPlane != binary {
		t.Errorf("the side runs %q: %v", s.ControlPlane, err)
	}
}

// A comparison is resumed as it was begun, or not at all.
func TestResumeRefusesChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*session)
		want   string
	}{
		"settings":     {func(s *session) { s.o.B.Set = []string{"nodes.count=5"} }, "settings, binary or revision"},
		"another plan": {func(s *session) { s.o.Plan.Looks = []result.Look{{Pairs: 3, Alpha: 0.01}} }, "its plan cannot be changed"},
		"figures":      {func(s *session) { s.o.Gated = []string{"loud"} }, "the figures that decide"},
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

// A figure of which more is better keeps its sign when it is resumed.
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

// What fails its gates may cost less, and is not better for that.
func TestFailingBIsNoImprovement(t *testing.T) {
	s := options(t, &plane{spread: 0.01, factor: 0.5, failing: true})
	c, _, err := s.run(t.Context())
	if err != nil || c.Answer != result.CouldNotTell || c.ExitCode != exitcode.NoData {
		t.Errorf("%s, exit %d: %v", c.Answer, c.ExitCode, err)
	}
}

// A first pair whose plane died keeps the logs that the error names.
func TestDeadPlaneKeepsItsLogs(t *testing.T) {
	s := options(t, &plane{})
	s.member = func(_ context.Context, o run.Options) (result.Result, error) {
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

// Beside a baseline each look has its own alpha, and nothing is answered between looks.
func TestLooksBesideABaseline(t *testing.T) {
	plan := paired.Default()
	for pairs, want := range map[int]int{0: 0, 5: 0, 6: 6, 8: 6, 12: 12, 20: 12} {
		looks := reached(plan.Looks, pairs)
		if got := len(looks); want == 0 && got != 0 || want > 0 && (got != 1 || looks[0].Pairs != want) {
			t.Errorf("after %d: %v", pairs, looks)
		}
	}
	c := result.AB{Plan: plan, A: result.Side{Baseline: "x"}, Figures: []result.ABFigure{{Name: "calm", Gated: true}}, Sets: &result.Sets{}}
	for i := range 5 {
		member := result.Member{Verdict: result.Pass, Values: map[string]float64{"calm": 1 + 0.001*float64(i)}}
		c.Sets.A = append(c.Sets.A, member)
		c.Pairs = append(c.Pairs, result.Pair{Number: i + 1, Order: "B", B: result.Member{Verdict: result.Pass, Values: map[string]float64{"calm": 2 + 0.001*float64(i)}}})
	}
	if judgePairs(&c); c.Answer != result.CouldNotTell {
		t.Errorf("after 5 runs, before the first look: %s", c.Answer)
	}
}
