package archive

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Downsample writes the archive to dir, which must exist, with one sample per interval and series: the last one. It also
// keeps the samples at the Bounds of the run, the first and the last sample of each series, and all staleness markers with
// the samples before and after them.
func (a *Archive) Downsample(ctx context.Context, dir string, interval time.Duration) error {
	first, last, err := a.Bounds(ctx)
	if err != nil {
		return &result.Damaged{File: result.TSDBDir, Err: err}
	}
	keep := func(points []promql.FPoint) (kept []promql.FPoint) {
		for i, p := range points {
			near := points[max(0, i-1):min(i+2, len(points))]
			end := len(near) < 3 || p.T/interval.Milliseconds() != near[2].T/interval.Milliseconds()
			stale := slices.ContainsFunc(near, func(n promql.FPoint) bool { return value.IsStaleNaN(n.F) })
			if end || stale || p.T == first.UnixMilli() || p.T == last.UnixMilli() {
				kept = append(kept, p)
			}
		}
		return kept
	}
	blocks, _, err := blockWriter{a.queryable, blockLength, keep}.write(ctx, dir, 0, math.MaxInt64/2)
	if err == nil && blocks == 0 {
		err = &result.Damaged{File: result.TSDBDir, Err: errors.New("it contains no samples")}
	}
	return err
}
