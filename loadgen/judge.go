package loadgen

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/breakdown"
	"github.com/stormglass/stormglass/loadgen/gate"
	"github.com/stormglass/stormglass/loadgen/outage"
	"github.com/stormglass/stormglass/loadgen/record"
	"github.com/stormglass/stormglass/loadgen/report"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Judge judges the run in dir by its own gates and writes result.json,
// junit.xml and report.html. It reads nothing but the directory.
func Judge(ctx context.Context, dir string) (result.Result, error) {
	rec, err := readRecorded(dir)
	if err != nil {
		return result.Result{}, err
	}
	s, text, err := readScenario(dir)
	if err != nil {
		return result.Result{}, err
	}
	gates, err := gate.Compile(s)
	if err != nil {
		return result.Result{}, usageError{err}
	}
	// A run without an archive is judged too: its gates have no data.
	archive, archiveErr := record.OpenArchive(dir)
	var source report.Source
	if archiveErr == nil {
		defer archive.Close()
		source = series{archive}
	}
	if err := analyse(ctx, dir, s, archive, &rec); err != nil {
		return result.Result{}, err
	}
	res, err := gate.Judge(ctx, gates, archive, rec)
	if err != nil {
		return res, environmentf("%w", err)
	}
	if res.Figures, err = figures(ctx, s, archive, rec); err != nil {
		return res, err
	}
	away, _ := outage.Read(rec.Timeline)
	audit, err := breakdown.LoadAudit(dir)
	if err != nil {
		return res, environmentf("%w", err)
	}
	if res.Breakdown, err = breakdown.Split(ctx, rec.Measurements.Phases, archive, audit, away); err != nil {
		return res, environmentf("%w", err)
	}
	lacks(&res, archiveErr, untold(rec))
	if err := report.Write(ctx, dir, res, rec.Timeline, text, source); err != nil {
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
