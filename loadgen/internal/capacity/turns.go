package capacity

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// RunInTurns searches two configurations, a trial of A and a trial of B in turns until both have an answer, so that what changes on
// the machine meanwhile changes both. out is the directory of both searches, resume that of two to go on with. An error means that nothing was tried.
func RunInTurns(ctx context.Context, sides [2]RunOptions, out, resume string) (result.CapacityComparison, string, error) {
	p := pair{out: out, resume: resume}
	for i, o := range sides {
		p.sides[i] = onPlanes(o)
	}
	return p.run(ctx)
}

// pair is two searches in turns.
type pair struct {
	sides       [2]session
	out, resume string
}

// sideNames are those of the sides for readers; sideDirs their directories in that of both.
var (
	sideNames = [2]string{"A", "B"}
	sideDirs  = [2]string{"a", "b"}
)

func (p *pair) run(ctx context.Context) (c result.CapacityComparison, dir string, err error) {
	dir, made := p.resume, []string(nil)
	if dir == "" {
		if dir, made, err = rundir.Make(p.out, p.sides[0].o.Scenario.Name+"-ab", time.Now()); err != nil {
			return c, "", err
		}
	}
	if err := p.open(ctx, dir); err != nil {
		for _, s := range p.sides {
			rundir.RemoveMade(s.made)
		}
		rundir.RemoveMade(made)
		return c, "", err
	}
	tried, err := p.search(ctx)
	if !tried[0] && !tried[1] {
		rundir.RemoveMade(made)
		return c, "", err
	}
	c = p.compared(dir, tried)
	return c, dir, rundir.WriteJSON(dir, result.CapacityComparisonFile, c)
}

// compared compares what the two searches found.
func (p *pair) compared(dir string, tried [2]bool) result.CapacityComparison {
	c := result.CapacityComparison{Schema: result.CapacityComparisonSchema, InTurns: true}
	for i, s := range p.sides {
		c.Sides[i] = result.CapacitySide{Dir: filepath.Join(dir, sideDirs[i]), Capacity: s.c}
		if !tried[i] {
			c.Sides[i].Answer = string(Unfinished)
		}
	}
	return conclude(c, [2]*Search{p.sides[0].search, p.sides[1].search})
}

// open reads both sides before anything starts.
func (p *pair) open(ctx context.Context, dir string) error {
	for i := range p.sides {
		s, of := &p.sides[i], filepath.Join(dir, sideDirs[i])
		s.name, s.whole = sideNames[i]+": ", dir
		s.o.Out, s.o.Resume = of, ""
		if _, err := os.Stat(filepath.Join(of, result.CapacityFile)); p.resume != "" && err == nil {
			s.o.Out, s.o.Resume = "", of
		}
		if err := s.open(ctx); err != nil {
			return err
		}
	}
	if p.sides[0].c.Digest != p.sides[1].c.Digest {
		return exitcode.Usagef("--a and --b differ in more than the control plane, its faults and the range: what they hold is not comparable")
	}
	return nil
}

// search makes the trials of both, and reports which have any. When one search ends early the other does too: both are gone on
// with together.
func (p *pair) search(ctx context.Context) (tried [2]bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	order := newTurns()
	var failed [2]error
	var both sync.WaitGroup
	for i := range p.sides {
		p.sides[i].turn = func() func(bool) {
			end := order.take(i)
			return func(goesOn bool) {
				if !goesOn {
					stop()
				}
				end()
			}
		}
		other := &p.sides[1-i]
		p.sides[i].further = func() bool { return other.search.Searching() } // in a turn: the other one waits
		both.Go(func() {
			defer order.leave(i)
			_, dir, err := p.sides[i].goOn(ctx)
			tried[i], failed[i] = dir != "", err
		})
	}
	both.Wait()
	return tried, cmp.Or(failed[0], failed[1])
}

// turns are taken by two, one after the other, until one has left.
type turns struct {
	changed *sync.Cond
	next    int
	left    [2]bool
}

func newTurns() *turns { return &turns{changed: sync.NewCond(&sync.Mutex{})} }

// take waits for the turn of one, and returns what ends it.
func (t *turns) take(i int) (end func()) {
	t.changed.L.Lock()
	defer t.changed.L.Unlock()
	for t.next != i && !t.left[1-i] {
		t.changed.Wait()
	}
	return func() {
		t.changed.L.Lock()
		defer t.changed.L.Unlock()
		t.next = 1 - i
		t.changed.Broadcast()
	}
}

func (t *turns) leave(i int) {
	t.changed.L.Lock()
	defer t.changed.L.Unlock()
	t.left[i] = true
	t.changed.Broadcast()
}
