package judge

import (
	"context"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/judge/recovery"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// analyse computes the faults' effects from a run's records, and samples the
// scenario's signals. Without an archive there are no samples.
func analyse(ctx context.Context, rec *rundir.Recorded) error {
	if rec.Scenario == nil {
		return nil
	}
	rec.Recovery = recovery.Analyse(recovery.Input{
		Timeline: rec.Timeline, Slots: rec.Slots, Phases: rec.Measurements.Phases, Bound: bounds(rec.Scenario),
	})
	var signals []recovery.Signal
	for _, x := range rec.Scenario.Signals {
		signals = append(signals, recovery.Signal(x))
	}
	var err error
	rec.Signals, err = recovery.Signals(ctx, signals, rec.Measurements.Phases, rec.Scenario.Record.Interval.D(), values(rec.Archive))
	return err
}

// bounds are what every request of a load has to hold: upstream's objective for
// lists where it does nothing but list, else that for single objects.
func bounds(s *scenario.Scenario) func(load string) time.Duration {
	lists := map[string]bool{}
	for _, l := range s.Loads() {
		asks := l.Mix
		if len(asks) == 0 {
			asks = []scenario.Operation{l.Operation}
		}
		lists[l.Name] = !slices.ContainsFunc(asks, func(o scenario.Operation) bool { return o.Verb != "list" })
	}
	return func(load string) time.Duration {
		if lists[load] {
			return recovery.ListBound
		}
		return recovery.DefaultBound
	}
}

// values evaluates PromQL over an archive.
func values(archive *archive.Archive) recovery.Query {
	return func(ctx context.Context, expr string, at time.Time) ([]float64, error) {
		if archive == nil {
			return nil, nil
		}
		samples, err := archive.Instant(ctx, expr, at)
		var all []float64
		for _, s := range samples {
			all = append(all, s.V)
		}
		return all, err
	}
}

// figures are the rows that the run adds to a comparison of variants.
func figures(ctx context.Context, rec *rundir.Recorded) ([]result.Figure, error) {
	compiled, err := gate.Figures(rec.Scenario)
	if err != nil {
		rec.AddScenarioDamage(err)
		return nil, nil
	}
	return gate.Measure(ctx, compiled, rec)
}
