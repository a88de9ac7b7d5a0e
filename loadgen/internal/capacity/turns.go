package capacity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/series"
	"github.com/stormglass/stormglass/loadgen/result"
)

// RunInTurns searches for the capacities of two configurations, A and B. Their trials alternate until both searches
// have an answer, so that changes on the machine affect both. RunInTurns creates a directory for both searches in the
// directory out. resume is the directory of two searches to resume; empty means new searches. If RunInTurns fails,
// neither search has a trial.
func RunInTurns(ctx context.Context, sides [2]RunOptions, out, resume string) (result.CapacityComparison, string, error) {
	p := pair{out: out, resume: resume}
	for i, o := range sides {
		p.sides[i] = onPlanes(o)
	}
	return p.run(ctx)
}

// pair runs two searches alternately.
type pair struct {
	sides       [2]session
	out, resume string
}

// sideNames, sideFlags and sideDirs are the displayed names, the flags and the subdirectories of A and B.
var (
	sideNames = [2]string{"A", "B"}
	sideFlags = [2]string{"--a", "--b"}
	sideDirs  = [2]string{"a", "b"}
)

func (p *pair) run(ctx context.Context) (c result.CapacityComparison, dir string, err error) {
	defer func() {
		for i := range p.sides {
			p.sides[i].Dir.Unlock()
		}
	}()
	dir, made := p.resume, []string(nil)
	if dir == "" {
		if dir, made, err = rundir.Make(p.out, p.sides[0].o.Scenario.Name+"-ab", time.Now()); err != nil {
			return c, "", err
		}
	}
	if err := p.open(ctx, dir); err != nil {
		for _, s := range p.sides {
			err = errors.Join(err, s.Dir.Remove())
		}
		rundir.RemoveMade(made)
		return c, "", err
	}
	untried := p.search(ctx)
	if untried[0] != nil && untried[1] != nil {
		rundir.RemoveMade(made)
		if errors.Is(untried[0], otherFailed{}) {
			return c, "", untried[1]
		}
		return c, "", untried[0]
	}
	c = p.compared(dir, untried)
	return c, dir, rundir.WriteJSON(dir, result.CapacityComparisonFile, c)
}

// compared returns the comparison of both searches. untried holds the error of each search that has no trial.
func (p *pair) compared(dir string, untried [2]error) result.CapacityComparison {
	c := result.CapacityComparison{Schema: result.CapacityComparisonSchema, InTurns: true}
	for i, s := range p.sides {
		side := result.CapacitySide{Dir: filepath.Join(dir, sideDirs[i]), Capacity: s.c}
		if err := untried[i]; err != nil {
			side.Answer, side.ExitCode = string(Unfinished), exitcode.Of(err)
			side.Notes = append(side.Notes, series.EndedEarly(err))
		}
		c.Sides[i] = side
	}
	c = conclude(c, [2]*Search{p.sides[0].search, p.sides[1].search})
	for _, s := range c.Sides {
		if s.ExitCode == exitcode.Environment {
			c.ExitCode, c.Why = exitcode.Environment, s.Dir+": the environment failed"
		}
	}
	return c
}

// open opens both searches and builds their binaries, before any trial starts.
func (p *pair) open(ctx context.Context, dir string) error {
	if p.resume != "" && !isSearch(filepath.Join(dir, sideDirs[0])) && !isSearch(filepath.Join(dir, sideDirs[1])) {
		if isSearch(dir) {
			return exitcode.Usagef("--resume %s: the search in this directory has only one control plane, without B (remove --b)", dir)
		}
		return exitcode.Usagef("--resume %s: the directory does not contain two searches (%s/%s is missing)", dir, sideDirs[0], result.CapacityFile)
	}
	for i := range p.sides {
		s, of := &p.sides[i], filepath.Join(dir, sideDirs[i])
		s.name, s.Whole = sideNames[i]+": ", dir
		s.o.Out, s.o.Resume = of, ""
		if entries, _ := os.ReadDir(of); p.resume != "" && len(entries) > 0 { // the file is missing if the first control plane did not start
			s.o.Out, s.o.Resume = "", of
		}
		if err := s.open(ctx); err != nil {
			return fmt.Errorf("%s: %w", sideFlags[i], err)
		}
		s.c.InTurns = true
	}
	if p.sides[0].c.Digest != p.sides[1].c.Digest {
		return exitcode.Usagef("--a and --b change more than the control plane, its faults and the range, so the capacities of A and B are not comparable")
	}
	for i := range p.sides {
		if err := p.sides[i].build(ctx); err != nil {
			return fmt.Errorf("%s: %w", sideFlags[i], err)
		}
	}
	return nil
}

// search runs the trials of both searches. It returns the error of each search that ran no trial. If one search fails,
// the other one ends too, so you can resume both together.
func (p *pair) search(ctx context.Context) (untried [2]error) {
	order := &turns{changed: sync.NewCond(&sync.Mutex{})}
	var both sync.WaitGroup
	for i := range p.sides {
		p.sides[i].turn = func() func(bool) { return order.take(i) }
		other := &p.sides[1-i]
		p.sides[i].further = func() bool { return other.search.Searching() } // this search calls it only while the other search waits
		both.Go(func() {
			_, dir, err := p.sides[i].goOn(ctx)
			if dir == "" {
				untried[i] = err
			}
			order.leave(i, err != nil)
		})
	}
	both.Wait()
	return untried
}

// otherFailed is the error of a search that ended because the other search of the pair failed.
type otherFailed struct{}

func (otherFailed) Error() string { return "the other search failed" }

// Unjudged returns true: the error means missing data, not a failure of the environment.
func (otherFailed) Unjudged() bool { return true }

// turns lets two searches run trials alternately. After one search has ended, the other one continues without waiting.
// After a failure, neither search runs another trial.
type turns struct {
	changed *sync.Cond
	next    int
	left    [2]bool
	failed  bool
}

// take waits for the turn of search i and returns the function that ends the turn. It returns nil if a search failed.
func (t *turns) take(i int) (end func(failed bool)) {
	t.changed.L.Lock()
	defer t.changed.L.Unlock()
	for t.next != i && !t.left[1-i] && !t.failed {
		t.changed.Wait()
	}
	if t.failed {
		return nil
	}
	return func(failed bool) {
		t.changed.L.Lock()
		defer t.changed.L.Unlock()
		t.next, t.failed = 1-i, t.failed || failed
		t.changed.Broadcast()
	}
}

func (t *turns) leave(i int, failed bool) {
	t.changed.L.Lock()
	defer t.changed.L.Unlock()
	t.left[i], t.failed = true, t.failed || failed
	t.changed.Broadcast()
}
