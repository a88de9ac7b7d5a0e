// Package judge judges recorded runs by their own gates, or by other gates and rules. It
// reads the run directory and nothing else.
package judge

import (
	"context"
	"errors"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge/breakdown"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/judge/recovery"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Judge judges the run in dir by its own gates and writes result.json, junit.xml and
// report.html. A damaged file is no data, which the result says; an error means that
// nothing could be judged or written.
func Judge(ctx context.Context, dir string) (res result.Result, err error) {
	rec, err := rundir.Open(dir)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	var gates []gate.Compiled
	if rec.Scenario != nil {
		if gates, err = gate.Compile(rec.Scenario); err != nil {
			rec.AddScenarioDamage(err)
		}
	}
	if res, err = judge(ctx, rec, gates); err != nil {
		return res, err
	}
	if err := report.Write(ctx, dir, res, rec.Timeline, rec.Slots, rec.ScenarioText, source(rec)); err != nil {
		return res, exitcode.Environmentf("%w", err)
	}
	return res, nil
}

// judge judges the run by gates. An archive that cannot be read after all is damaged, and
// the run is judged again without it.
func judge(ctx context.Context, rec *rundir.Recorded, gates []gate.Compiled) (result.Result, error) {
	res, err := analyse(ctx, rec, gates)
	if err != nil && ctx.Err() == nil && rec.Archive != nil {
		rec.AddDamage(&result.Damaged{File: result.TSDBDir, Err: err})
		rec.AddDamage(rec.Archive.Close())
		rec.Archive = nil
		res, err = analyse(ctx, rec, gates)
	}
	if err != nil {
		return res, err
	}
	res.Notes = append(res.Notes, rec.Notes...)
	AddReasons(&res, rec.Doubts()...)
	if rec.Foreign != nil { // by a scenario that is not its own the run does not fail either
		if res.Verdict = result.NoData; res.ExitCode != exitcode.Environment {
			res.ExitCode = exitcode.NoData
		}
	}
	return res, nil
}

func analyse(ctx context.Context, rec *rundir.Recorded, gates []gate.Compiled) (res result.Result, err error) {
	if rec.Scenario != nil {
		rec.Recovery = recovery.Analyse(rec)
		if rec.Signals, err = recovery.Signals(ctx, rec); err != nil {
			return res, err
		}
	}
	if res, err = gate.Judge(ctx, gates, rec); err != nil {
		return res, err
	}
	if res.Breakdown, err = breakdown.Split(ctx, rec); err != nil || rec.Scenario == nil {
		return res, err
	}
	figures, err := gate.Figures(rec.Scenario)
	if err != nil {
		rec.AddScenarioDamage(err)
		return res, nil
	}
	res.Figures, err = gate.Measure(ctx, figures, rec)
	return res, err
}

// AddReasons puts what is missing before the other reasons. Gates that need none of it
// may pass; the run does not.
func AddReasons(res *result.Result, all ...error) {
	var reasons []string
	for _, err := range all {
		reasons = append(reasons, err.Error())
	}
	res.Reasons = append(reasons, res.Reasons...)
	if len(all) > 0 && res.Verdict == result.Pass {
		res.Verdict, res.ExitCode = result.NoData, exitcode.NoData
	}
}

// source is the archive for the report's charts; nil where there is none.
func source(rec *rundir.Recorded) chart.Source {
	if rec.Archive == nil {
		return nil
	}
	return rec.Archive
}
