package chart

import (
	"context"
	"time"
)

// Source answers range queries over what a run recorded. It may be asked from
// several goroutines at once.
type Source interface {
	// Range evaluates a PromQL expression at start, start+step, ... end. A
	// series has points only where it has values.
	Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]Series, error)
}

// Series is one series of a range query.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is one value of a series.
type Point struct {
	T time.Time
	V float64
}
