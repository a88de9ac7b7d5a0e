package loadgen

import (
	"context"
	"errors"
	"time"

	"github.com/stormglass/stormglass/loadgen/gate"
	"github.com/stormglass/stormglass/loadgen/record"
	"github.com/stormglass/stormglass/loadgen/report"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Judge judges the run in dir by its own gates and writes result.json, junit.xml and
// report.html. It reads nothing but the directory. Whatever is damaged there is no
// data, which the result says; an error means that nothing could be judged or written.
func Judge(ctx context.Context, dir string) (res result.Result, err error) {
	rec, err := openRecorded(dir)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	var gates []gate.Compiled
	if rec.scenario != nil {
		if gates, err = gate.Compile(rec.scenario); err != nil {
			rec.damagedScenario(err)
		}
	}
	if res, err = rec.judge(ctx, gates); err != nil {
		return res, err
	}
	var source report.Source
	if rec.archive != nil {
		source = series{rec.archive}
	}
	if err := report.Write(ctx, dir, res, rec.Timeline, rec.slots, rec.text, source); err != nil {
		return res, environmentf("%w", err)
	}
	return res, nil
}

// series lets the report draw from the archive.
type series struct{ archive *record.Archive }

func (s series) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]report.Series, error) {
	found, err := s.archive.Range(ctx, expr, start, end, step)
	out := make([]report.Series, 0, len(found))
	for _, f := range found {
		points := make([]report.Point, 0, len(f.Points))
		for _, p := range f.Points {
			points = append(points, report.Point(p))
		}
		out = append(out, report.Series{Labels: f.Labels, Points: points})
	}
	return out, err
}
