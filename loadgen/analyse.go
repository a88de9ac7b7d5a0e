package loadgen

import (
	"context"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/gate"
	"github.com/stormglass/stormglass/loadgen/pulse"
	"github.com/stormglass/stormglass/loadgen/record"
	"github.com/stormglass/stormglass/loadgen/recovery"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// analyse tells from what a run recorded what its faults did, and samples the
// scenario's signals. Without an archive there are no samples.
func analyse(ctx context.Context, dir string, s *scenario.Scenario, archive *record.Archive, rec *gate.Recorded) error {
	slots, err := pulse.Read(dir)
	if err != nil {
		return environmentf("%w", err)
	}
	rec.Recovery = recovery.Analyse(recovery.Input{
		Timeline: rec.Timeline, Pulse: slots, Phases: rec.Measurements.Phases, Bound: bounds(s),
	})
	var signals []recovery.Signal
	for _, x := range s.Signals {
		signals = append(signals, recovery.Signal(x))
	}
	rec.Signals, err = recovery.Signals(ctx, signals, rec.Measurements.Phases, s.Record.Interval.D(), values(archive))
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
func values(archive *record.Archive) recovery.Query {
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

// readRecorded reads what the run in dir left behind.
func readRecorded(dir string) (gate.Recorded, error) {
	var rec gate.Recorded
	var err error
	if rec.Run, rec.Measurements, err = readRun(dir); err != nil {
		return rec, err
	}
	if rec.Timeline, err = record.ReadTimeline(dir); err != nil {
		return rec, environmentf("%w", err)
	}
	return rec, nil
}

// figures are the rows that the run adds to a comparison of variants.
func figures(ctx context.Context, s *scenario.Scenario, archive *record.Archive, rec gate.Recorded) ([]result.Figure, error) {
	compiled, err := gate.Figures(s)
	if err != nil {
		return nil, usageError{err}
	}
	all, err := gate.Measure(ctx, compiled, archive, rec)
	if err != nil {
		return nil, environmentf("%w", err)
	}
	return all, nil
}
