package chart

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Source answers range queries over what a run recorded. It may be asked from
// several goroutines at once.
type Source interface {
	// Range evaluates a PromQL expression at start, start+step, ... end. A
	// series has points only where it has values.
	Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]Series, error)
}

type (
	// Series is one series of a range query.
	Series = archive.Series
	// Point is one value of a series.
	Point = archive.Point
)
