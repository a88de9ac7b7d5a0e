package run

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/history"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// finishWithin bounds the end of a history: the final reads wait for a control
// plane that comes back from its last fault.
const finishWithin = 3 * time.Minute

// newHistory makes a load whose evidence, if anything is wrong, goes to dir.
func newHistory(target load.Target, l scenario.PlacedLoad, s *scenario.Scenario, dir string) (load.Load, error) {
	return history.New(target, history.Config{
		Name: l.Name, Clients: l.Clients, Registers: l.Objects, Rate: float64(l.Rate), Watchers: l.Watchers,
		Length: length(s, l.Phase), Dir: dir,
	})
}

// length of a phase, or of all together, or zero where one ends by a condition:
// nobody knows when.
func length(s *scenario.Scenario, phase string) time.Duration {
	var sum time.Duration
	for _, p := range s.Phases {
		if phase != "" && p.Name != phase {
			continue
		}
		if p.Until != "" {
			return 0
		}
		sum += p.For.D()
	}
	return sum
}

// finishHistories reads the final state and judges. When the run was
// interrupted, or its plane has ended, ctx has too: a history is judged then as
// far as it goes, and says what it lacks.
func (r *run) finishHistories(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, finishWithin)
	defer cancel()
	for _, p := range r.loads.all {
		h, ok := p.load.(*history.Load)
		if !ok || p.stop == nil { // it never ran
			continue
		}
		r.step("judging the history of %s", p.at.Name)
		if err := h.Finish(ctx); err != nil {
			r.step("history of %s: %v", p.at.Name, err)
		}
	}
}

// histories are the results of the loads that keep one.
func (ls *loads) histories() []result.History {
	var all []result.History
	for _, p := range ls.all {
		if h, ok := p.load.(*history.Load); ok {
			all = append(all, h.Results())
		}
	}
	return all
}
