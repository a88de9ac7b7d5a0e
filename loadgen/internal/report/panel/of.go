package panel

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Of lets panels ask a run's archive.
func Of(a *archive.Archive) Source { return recording{a} }

type recording struct{ *archive.Archive }

func (a recording) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]Series, error) {
	found, err := a.Archive.Range(ctx, expr, start, end, step)
	all := make([]Series, 0, len(found))
	for _, f := range found {
		points := make([]Point, 0, len(f.Points))
		for _, p := range f.Points {
			points = append(points, Point(p))
		}
		all = append(all, Series{Labels: f.Labels, Points: points})
	}
	return all, err
}
