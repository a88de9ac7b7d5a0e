package runmetrics

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// extent returns the times of the first and the last sample, in ms.
func extent(ctx context.Context, q storage.Queryable) (first, last int64, err error) {
	first = maxTime
	err = archive.Stream(ctx, q, 0, maxTime, func(_ labels.Labels, points []promql.FPoint) error {
		first, last = min(first, points[0].T), max(last, points[len(points)-1].T)
		return nil
	}, archive.Named())
	return first, last, err
}
