package panel

import (
	"errors"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Run holds the marks of a run that are drawn into every panel.
type Run struct {
	Span
	Phases []Mark
	// Zero is the moment from which the page counts time. The zero value: Start.
	Zero time.Time
	// Causes are the faults; of Recorded the loads too.
	Causes []Cause
}

// Faults are the causes that are no loads.
func (r Run) Faults() []Mark {
	var all []Mark
	for _, c := range r.Causes {
		if !c.Load {
			all = append(all, c.Mark)
		}
	}
	return all
}

// RunOf is the run that a result and its timeline tell of, with the interval
// between its scrapes.
func RunOf(r result.Result, events []result.Event, scrape time.Duration) Run {
	run := Run{Span: Span{Start: r.Run.Started, End: r.Run.Ended, Scrape: scrape}}
	phases := r.Measurements.Phases
	if len(phases) > 0 {
		run.Start, run.End = phases[0].Start, phases[len(phases)-1].End
	}
	for _, p := range phases {
		run.Phases = append(run.Phases, Mark{chart.Clean(p.Name), p.Start, p.End})
	}
	for _, f := range timeline.Of(events).Faults {
		run.Causes = append(run.Causes, Cause{Mark: Mark{chart.Clean(f.Kind), f.Begin, f.EndOr(run.End)}, Of: kindsOf(f.On)})
	}
	return run
}

// Recorded is the run that was recorded in a directory, with its loads. It needs no
// result: a run that was killed has a recording too.
func Recorded(rec *rundir.Recorded) (Run, error) {
	if err := errors.Join(rec.Damage...); err != nil {
		return Run{}, err
	}
	phases := rec.Measurements.Phases
	run := RunOf(result.Result{Run: rec.Run, Measurements: rec.Measurements}, rec.Timeline, rec.Scenario.Record.Interval.D())
	run.Causes = causes(run, rec.Scenario, phases)
	return run, nil
}
