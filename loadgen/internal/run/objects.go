package run

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/objects"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// actOnObjects performs an action on objects of any resource, and records the number of objects in the timeline. `in`
// is the name of the action's phase, or scenario.Teardown. path is the action's position in the scenario file.
func (ps *phases) actOnObjects(ctx context.Context, in, path string, a *scenario.Action) error {
	name := nameOfAction(a)
	began := time.Now()
	record := func(what string) {
		if ctx.Err() != nil { // the phase has ended
			return
		}
		ps.event(began, result.EventAction, name, fmt.Sprintf("%s in %s", what, time.Since(began).Round(time.Millisecond)))
	}
	if !a.Has() {
		done, err := ps.objects.Act(ctx, *a)
		record(done.String())
		if err == nil && done.Selected == 0 {
			ps.idle(fmt.Sprintf("%s: %s selected no object", path, name))
		}
		return err
	}
	all, err := ps.plan.Expand(scenario.PlacedBatch{Batch: &a.Batch, Name: in, Path: path})
	if err != nil {
		return err
	}
	made, err := ps.objects.Make(ctx, all, *a)
	record(fmt.Sprintf("%d of %s", made, all))
	return err
}

func nameOfAction(a *scenario.Action) string {
	return strings.TrimSpace(a.Kind + " " + a.Target.Resource)
}

// asked measures the work of one action in a phase: how much work was due, and how much was done.
type asked struct {
	result.Action
	*objects.Meter
}

// ask returns a new measurement of action i of a phase, and the context in which to run the action. It adds the measurement
// to the phase's results only if the end of the phase may cut off the action: if the action has a rate, repeats or begins
// later.
func (ps *phases) ask(ctx context.Context, p *scenario.Phase, i int) (context.Context, *asked) {
	a := &p.Actions[i]
	work := &asked{Action: result.Action{Index: i, Name: nameOfAction(a), Rate: float64(a.Rate), AtOnce: load.AtOnce}, Meter: objects.NewMeter()}
	if a.Rate == 0 && !a.Later() {
		return ctx, work
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.work = append(ps.work, work)
	return objects.WithMeter(ctx, work.Meter), work
}

// worked returns the measurements of the current phase's actions, in the order of the scenario file, and clears them.
func (ps *phases) worked() (all []result.Action) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, w := range ps.work {
		w.AddTo(&w.Action)
		all = append(all, w.Action)
	}
	ps.work = nil
	slices.SortFunc(all, func(a, b result.Action) int { return cmp.Compare(a.Index, b.Index) })
	return all
}

// idle records the message `what` that an action had nothing to do. It shows each message as a warning once.
func (ps *phases) idle(what string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.idled == nil {
		ps.idled = map[string]int{}
	}
	if ps.idled[what]++; ps.idled[what] == 1 {
		ps.step("warning: %s", what)
	}
}

// idles returns the messages about actions that had nothing to do.
func (ps *phases) idles() []string {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(ps.idled)) {
		if n := ps.idled[what]; n > 1 {
			what += fmt.Sprintf(", %d times", n)
		}
		lines = append(lines, what+" (set target.atLeast: 1 to make this an error)")
	}
	return lines
}

// startLater starts the actions that have their own start times, in parallel. If an action fails, startLater calls
// `fail`, which ends the phase. The function `end` cancels the actions and waits for those in progress.
func (ps *phases) startLater(ctx context.Context, p *scenario.Phase, start time.Time, fail context.CancelCauseFunc) (end func()) {
	later, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range p.Actions {
		if !p.Actions[i].Later() {
			continue
		}
		all.Go(func() {
			a, path := &p.Actions[i], actionPath(p, i)
			within, work := ps.ask(later, p, i)
			err := repeat(within, *a, start, work, func(ctx context.Context) error { return ps.actOnObjects(ctx, p.Name, path, a) })
			if err != nil && later.Err() == nil {
				fail(exitcode.Environmentf("phase %s: %w", p.Name, err))
			}
		})
	}
	return func() {
		stop()
		all.Wait()
	}
}

// repeat performs an action at each of its times until ctx ends, and counts the rounds. It skips a time if the
// previous round is still running.
func repeat(ctx context.Context, a scenario.Action, start time.Time, work *asked, do func(context.Context) error) error {
	for due := start.Add(a.After.D()); apiclient.Pause(ctx, time.Until(due)); {
		work.Rounds++
		err := do(ctx)
		if a.Every == 0 {
			work.Cut = a.Rate == 0 && ctx.Err() != nil
			return err
		}
		work.RoundsDue++
		now := time.Now()
		if ctx.Err() != nil {
			now = now.Add(-plan.LastRound)
		}
		for due = due.Add(a.Every.D()); !due.After(now); due = due.Add(a.Every.D()) {
			work.RoundsDue++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func actionPath(p *scenario.Phase, i int) string {
	return fmt.Sprintf("phases.%s.actions[%d]", p.Name, i)
}
