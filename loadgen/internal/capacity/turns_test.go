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

// inPair returns two searches that alternate on the planes a and b, and a slice that records the side of each trial.
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

// TestInTurns checks that trials alternate until one search has ended, and that the ratio of the capacities is right
// even if the machine becomes slower meanwhile.
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
		t.Fatalf("answer %q, exit code %d (%v); want B is lower, %d", c.Answer, c.ExitCode, err, exitcode.Fail)
	}
	if c.Low > 0.5 || c.High < 0.5 {
		t.Errorf("interval of B/A from %v to %v does not contain 0.5", c.Low, c.High)
	}
	if got := strings.Join(*order, ""); got != strings.Repeat("ab", len(got)/2)+strings.Repeat("a", len(got)%2) {
		t.Errorf("order of the trials = %s, want alternating", got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, result.CapacityComparisonFile)); err != nil || !strings.Contains(string(text), `"answer": "B is lower"`) {
		t.Errorf("%s: %v", result.CapacityComparisonFile, err)
	}
	again, err := Compare([2]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")})
	if err != nil || again.Answer != c.Answer || again.Median != c.Median || !again.InTurns {
		t.Errorf("Compare of the directories: %+v, error %v; want the same answer and median", again, err)
	}
}

// TestInTurnsResumed checks that both searches stop with the reason when a plane of one side ends, and that they can be
// resumed together.
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
		t.Fatalf("answer %q, exit code %d after %d trials (%v); want could not tell, %d after 8", c.Answer, c.ExitCode, len(*order), err, exitcode.Environment)
	}
	for i, s := range c.Sides {
		why := []string{"the other search failed", "trial 4: no room on the disk"}[i]
		if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "--resume "+dir+"`") || !strings.Contains(s.Notes[0], why) {
			t.Errorf("notes of %s = %q, want %q and the command that resumes both", s.Dir, s.Notes, why)
		}
	}
	var text strings.Builder
	if err := report.CapacityComparison(&text, c, report.TerminalOptions{Width: 300}); err != nil || !strings.Contains(text.String(), "no room on the disk") {
		t.Errorf("the text report lacks the reason (%v):\n%s", err, text.String())
	}
	p.resume = dir
	if c, _, err = p.run(t.Context()); err != nil || c.Answer != "B is lower" || c.Sides[0].Trials[3].Number != 4 || len(*order) != len(c.Sides[0].Trials)+len(c.Sides[1].Trials)+1 {
		t.Errorf("resumed searches: answer %q after %d trials (%v), want B is lower", c.Answer, len(*order), err)
	}
}

// TestInTurnsFirstPlane checks that the result names the side whose first plane does not start, and that this plane's
// logs stay. If A's first plane does not start, the searches leave no files.
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
		t.Errorf("exit code %d, reason %q, B's notes %q (%v); want %d and B's error", c.ExitCode, c.Why, c.Sides[1].Notes, err, exitcode.Environment)
	}
	if _, err := os.Stat(filepath.Join(dir, "b", "trial-01", "plane", "logs")); err != nil {
		t.Error(err)
	}
	p, _ = inPair(t, plane{}, plane{capacity: 700})
	p.sides[0].Member = func(context.Context, run.Options) (result.Result, error) {
		return result.Result{}, exitcode.Environmentf("etcd-0 did not start")
	}
	if _, _, err := p.run(t.Context()); exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "etcd-0 did not start") {
		t.Errorf("A's first plane does not start: error %v", err)
	}
	if _, err := os.Stat(p.out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the failed searches left %s (%v)", p.out, err)
	}
}

// TestInTurnsRefused checks that an invalid search fails before its first trial and leaves no files.
func TestInTurnsRefused(t *testing.T) {
	p, order := inPair(t, plane{capacity: 700}, plane{capacity: 700})
	p.sides[1].o.Scenario.Gates[0].Name = "other"
	if _, _, err := p.run(t.Context()); exitcode.Of(err) != exitcode.Usage || len(*order) > 0 {
		t.Errorf("B has other gates: error %v after %d trials, want a usage error before any", err, len(*order))
	}
	if _, err := os.Stat(p.out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refused searches left %s (%v)", p.out, err)
	}
	p, order = inPair(t, plane{capacity: 700}, plane{capacity: 700})
	p.sides[1].o.Fuse.MaxRate = 200
	if _, _, err := p.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.HasPrefix(err.Error(), "--b: background.writes.rate=5000/s") || len(*order) > 0 {
		t.Errorf("B exceeds --max-rate: error %v after %d trials, want a usage error before any", err, len(*order))
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
			t.Errorf("B has other gates: error %v after %d builds, want a usage error before any", err, built)
		}
		if !unlike && (exitcode.Of(err) != exitcode.Environment || !strings.HasPrefix(err.Error(), "--a: it does not compile") || built != 1 || len(*order) > 0) {
			t.Errorf("failed build: error %v after %d builds and %d trials, want A's error after one build", err, built, len(*order))
		}
		if _, err := os.Stat(p.out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the refused searches left %s (%v)", p.out, err)
		}
	}
	one := newSession(t, &plane{capacity: 700})
	_, single, err := one.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nothing := filepath.Join(t.TempDir(), "nothing")
	for dir, why := range map[string]string{nothing: "does not contain two searches", single: "remove --b"} {
		p, order := inPair(t, plane{capacity: 700}, plane{capacity: 700})
		p.resume = dir
		if _, _, err := p.run(t.Context()); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), why) || len(*order) > 0 {
			t.Errorf("--resume %s: error %v after %d trials, want a usage error before any", dir, err, len(*order))
		}
	}
	if _, err := os.Stat(nothing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused --resume created %s", nothing)
	}
	p, _ = inPair(t, plane{capacity: 700}, plane{capacity: 700})
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, _, err := p.run(ctx); err == nil {
		t.Error("an interrupt before the first trial caused no error")
	}
	if _, err := os.Stat(p.out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the interrupted searches left %s (%v)", p.out, err)
	}
}

// TestVariantsInTurns checks that A and B may be variants of the scenario with different names.
func TestVariantsInTurns(t *testing.T) {
	p, _ := inPair(t, plane{capacity: 700, spread: 0.03}, plane{capacity: 350, spread: 0.03})
	p.sides[0].o.Scenario.Variants = []scenario.Variant{{Name: "three"}}
	p.sides[1].o.Scenario.Variant = "three"
	if c, _, err := p.run(t.Context()); err != nil || c.Answer != "B is lower" {
		t.Errorf("answer %q (%v), want B is lower", c.Answer, err)
	}
}
