package report

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/panel"
)

// panelSource lets the dashboards' panels ask what the charts ask.
type panelSource struct{ Source }

func (s panelSource) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]panel.Series, error) {
	found, err := s.Source.Range(ctx, expr, start, end, step)
	all := make([]panel.Series, 0, len(found))
	for _, f := range found {
		points := make([]panel.Point, 0, len(f.Points))
		for _, p := range f.Points {
			points = append(points, panel.Point(p))
		}
		all = append(all, panel.Series{Labels: f.Labels, Points: points})
	}
	return all, err
}

// panels is src for them, or nothing where there is none.
func panels(src Source) panel.Source {
	if src == nil {
		return nil
	}
	return panelSource{src}
}
