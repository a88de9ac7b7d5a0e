package capacity

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// inPair returns two searches that take turns on known planes, and the order of their trials by side.
func inPair(t *testing.T, a, b plane) (p *pair, order *[]string) {
	p, order = &pair{out: filepath.Join(t.TempDir(), "both")}, new([]string)
	for i, of := range []*plane{&a, &b} {
		s := newSession(t, of)
		one := s.Member
		s.Member = func(ctx context.Context, o run.Options) (result.Result, error) {
			*order = append(*order, filepath.Base(filepath.Dir(o.Out)))
			return one(ctx, o)
		}
		p.sides[i] = s
	}
	return p, order
}

// TestInTurns: trials alternate until both searches have ended, and a machine that slows down slows both.
func TestInTurns(t *testing.T) {
	p, order := inPair(t, plane{capacity: 700, spread: 0.03}, plane{capacity: 350, spread: 0.03})
	slower := 1.0
	for i := range p.sides {
		one := p.sides[i].Member
		p.sides[i].Member = func(ctx context.Context, o run.Options) (result.Result, error) {
			slower *= 0.998
			loads := o.Scenario.Background
			loads[0].Rate = scenario.Rate(float64(loads[0].Rate) / slower)
			return one(ctx, o)
		}
	}
	c, dir, err := p.run(t.Context())
	if err != nil || c.Answer != "B is lower" || c.ExitCode != exitcode.Fail || !c.InTurns {
		t.Fatalf("%s, exit %d: %v", c.Answer, c.ExitCode, err)
	}
	if c.Low > 0.5 || c.High < 0.5 {
		t.Errorf("ratio of B to A: %v to %v, but the true ratio is 0.5", c.Low, c.High)
	}
	if got := strings.Join(*order, ""); got != strings.Repeat("ab", len(got)/2)+strings.Repeat("a", len(got)%2) {
		t.Errorf("order of the trials = %s", got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, result.CapacityComparisonFile)); err != nil || !strings.Contains(string(text), `"answer": "B is lower"`) {
		t.Errorf("%s: %v", result.CapacityComparisonFile, err)
	}
	again, err := Compare([2]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")})
	if err != nil || again.Answer != c.Answer || again.Median != c.Median || !again.InTurns {
		t.Errorf("compared by their directories: %+v, %v", again, err)
	}
}

// TestInTurnsResumed: when a plane of one side ends, both searches stop with the reason and are resumed together.
func TestInTurnsResumed(t *testing.T) {
	dies := plane{capacity: 350, spread: 0.03, fails: func(n int) error {
		if n == 4 {
			return exitcode.Environmentf("no room on the disk")
		}
		return nil
	}}
	p, order := inPair(t, plane{capacity: 700, spread: 0.03}, dies)
	c, dir, err := p.run(t.Context())
	if err != nil || c.Answer != "could not tell" || c.ExitCode != exitcode.Environment || len(*order) != 8 {
		t.Fatalf("after %d trials: %s, exit %d: %v", len(*order), c.Answer, c.ExitCode, err)
	}
	for i, s := range c.Sides {
		why := []string{"the other search failed", "trial 4: no room on the disk"}[i]
		if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "--resume "+dir+"`") || !strings.Contains(s.Notes[0], why) {
			t.Errorf("%s says %q, want %q", s.Dir, s.Notes, why)
		}
	}
	var text strings.Builder
	if err := report.CapacityComparison(&text, c, report.TerminalOptions{Width: 300}); err != nil || !strings.Contains(text.String(), "no room on the disk") {
		t.Errorf("the terminal does not say why: %v\n%s", err, text.String())
	}
	p.resume = dir
	if c, _, err = p.run(t.Context()); err != nil || c.Answer != "B is lower" || c.Sides[0].Trials[3].Number != 4 || len(*order) != len(c.Sides[0].Trials)+len(c.Sides[1].Trials)+1 {
		t.Errorf("%s after %d trials: %v", c.Answer, len(*order), err)
	}
}

// TestInTurnsFirstPlane: a side whose plane never starts is reported as failed, and its logs are kept.
func TestInTurnsFirstPlane(t *testing.T) {
	p, _ := inPair(t, plane{capacity: 700}, plane{})
	p.sides[1].Member = func(_ context.Context, o run.Options) (result.Result, error) {
		if err := os.MkdirAll(filepath.Join(o.Out, "plane", "logs"), 0o700); err != nil {
			t.Fatal(err)
		}
		return result.Result{}, exitcode.Environmentf("etcd-0 did not start")
	}
	c, dir, err := p.run(t.Context())
	if err != nil || c.ExitCode != exitcode.Environment || !strings.HasPrefix(c.Why, filepath.Join(dir, "b")) || !strings.Contains(strings.Join(c.Sides[1].Notes, "\n"), "etcd-0 did not start") {
		t.Errorf("exit %d, %q, %q: %v", c.ExitCode, c.Why, c.Sides[1].Notes, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "b", "trial-01", "plane", "logs")); err != nil {
		t.Error(err)
	}
	p, _ = inPair(t, plane{}, plane{capacity: 700})
	p.sides[0].Member = func(context.Context, run.Options) (result.Result, error) {
		return result.Result{}, exitcode.Environmentf("etcd-0 did not start")
	}
	if _, _, err := p.run(t.Context()); exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "etcd-0 did not start") {
		t.Errorf("A's first plane: %v", err)
	}
	if _, err := os.Stat(p.out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the failed search left %s: %v", p.out, err)
	}
}

// TestInTurnsRefused: an invalid search is refused before anything starts, and leaves no files.
func TestInTurnsRefused(t *testing.T) {
	p, order := inPair(t, plane{capacity: 700}, plane{capacity: 700})
	p.sides[1].o.Scenario.Gates[0].Name = "other"
	if _, _, err := p.run(t.Context()); exitcode.Of(err) != exitcode.Usage || len(*order) > 0 {
		t.Errorf("other gates: %v after %d trials", err, len(*order))
	}
	if _, err := os.Stat(p.out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refused search left %s: %v", p.out, err)
	}
	p, order = inPair(t, plane{capacity: 700}, plane{capacity: 700})
	p.sides[1].o.Fuse.MaxRate = 200
	if _, _, err := p.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.HasPrefix(err.Error(), "--b: background.writes.rate=5000/s") || len(*order) > 0 {
		t.Errorf("over the highest rate: %v after %d trials", err, len(*order))
	}
	built := 0
	for _, unlike := range []bool{true, false} {
		p, order = inPair(t, plane{capacity: 700}, plane{capacity: 700})
		for i := range p.sides {
			p.sides[i].o.Build = func(context.Context) error {
				built++
				return exitcode.Environmentf("it does not compile")
			}
		}
		if unlike {
			p.sides[1].o.Scenario.Gates[0].Name = "other"
		}
		_, _, err := p.run(t.Context())
		if unlike && (exitcode.Of(err) != exitcode.Usage || built > 0) {
			t.Errorf("other gates: %v after %d builds", err, built)
		}
		if !unlike && (exitcode.Of(err) != exitcode.Environment || !strings.HasPrefix(err.Error(), "--a: it does not compile") || built != 1 || len(*order) > 0) {
			t.Errorf("a failed build: %v after %d builds and %d trials", err, built, len(*order))
		}
		if _, err := os.Stat(p.out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the refused search left %s: %v", p.out, err)
		}
	}
	one := newSession(t, &plane{capacity: 700})
	_, single, err := one.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nothing := filepath.Join(t.TempDir(), "nothing")
	for dir, why := range map[string]string{nothing: "does not contain two searches", single: "leave out --b"} {
		p, order := inPair(t, plane{capacity: 700}, plane{capacity: 700})
		p.resume = dir
		if _, _, err := p.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), why) || len(*order) > 0 {
			t.Errorf("--resume %s: %v after %d trials", dir, err, len(*order))
		}
	}
	if _, err := os.Stat(nothing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refused search created %s", nothing)
	}
	p, _ = inPair(t, plane{capacity: 700}, plane{capacity: 700})
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, _, err := p.run(ctx); err == nil {
		t.Error("the interrupted search reported no error")
	}
	if _, err := os.Stat(p.out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the interrupted search left %s: %v", p.out, err)
	}
}

// TestVariantsInTurns: two variants may differ in their control plane and their names.
func TestVariantsInTurns(t *testing.T) {
	p, _ := inPair(t, plane{capacity: 700, spread: 0.03}, plane{capacity: 350, spread: 0.03})
	p.sides[0].o.Scenario.Variants = []scenario.Variant{{Name: "three"}}
	p.sides[1].o.Scenario.Variant = "three"
	if c, _, err := p.run(t.Context()); err != nil || c.Answer != "B is lower" {
		t.Errorf("%s: %v", c.Answer, err)
	}
}
