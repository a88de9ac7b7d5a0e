package ab

import (
	"context"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/result"
)

// If a condition ends a run early, the run is not compared. The comparison ends, keeps its pairs and reports the
// reason.
func TestRunThatAConditionEndsEndsTheComparison(t *testing.T) {
	p := plane{spread: 0.01}
	s := options(t, &p)
	s.o.Fuse.AbortOn = []string{"errors=50%"}
	whole, cut := s.Member, 7 // B's run of pair 3
	s.Member = func(ctx context.Context, o run.Options) (result.Result, error) {
		if len(o.Fuse.AbortOn) != 1 {
			t.Errorf("a run without the condition: %+v", o.Fuse)
		}
		res, err := whole(ctx, o)
		if len(p.runs) == cut+1 {
			res.Run.Aborted, res.Verdict = "abortOn: errors in phase work, 3 s after its start: 62% is over 50%", result.Fail
		}
		return res, err
	}
	c, dir, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(c.Notes, "\n")
	if len(c.Pairs) != 3 || c.ExitCode != exitcode.NoData || !strings.Contains(notes, "was ended early by abortOn: errors in phase work") || !strings.Contains(notes, "--resume") {
		t.Errorf("%d pairs, exit %d, %q", len(c.Pairs), c.ExitCode, c.Notes)
	}
	if read, err := Read(dir); err != nil || len(read.Pairs) != 3 {
		t.Errorf("ab.json has %d pairs: %v", len(read.Pairs), err)
	}
	cut = 0
	s = options(t, &p)
	p.runs = nil
	s.Member = func(ctx context.Context, o run.Options) (result.Result, error) {
		res, err := whole(ctx, o)
		res.Run.Aborted = "abortOn: errors"
		return res, err
	}
	if _, _, err := s.run(t.Context()); exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), "pair 0: ") {
		t.Errorf("a comparison whose first run ended early: exit %d, %v", exitcode.Of(err), err)
	}
}

func TestRateOverTheBoundIsRefusedBeforeAnyRun(t *testing.T) {
	p := plane{spread: 0.01}
	s := options(t, &p)
	s.o.Fuse.MaxRate = 5
	_, _, err := s.run(t.Context())
	if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "--max-rate is 5/s") || len(p.runs) > 0 {
		t.Errorf("got %v after %d runs", err, len(p.runs))
	}
}
