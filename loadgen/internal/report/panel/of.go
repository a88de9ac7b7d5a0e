package panel

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// Of lets panels ask a run's archive.
func Of(a *archive.Archive) chart.Source { return recording{a} }

type recording struct{ *archive.Archive }

func (a recording) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]chart.Series, error) {
	found, err := a.Archive.Range(ctx, expr, start, end, step)
	all := make([]chart.Series, 0, len(found))
	for _, f := range found {
		points := make([]chart.Point, 0, len(f.Points))
		for _, p := range f.Points {
			points = append(points, chart.Point(p))
		}
		all = append(all, chart.Series{Labels: f.Labels, Points: points})
	}
	return all, err
}
