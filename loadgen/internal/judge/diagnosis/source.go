package diagnosis

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

// OfArchive diagnoses a recorded run, all of it where the options name no times.
func OfArchive(ctx context.Context, a *archive.Archive, o Options) (d result.Diagnosis, err error) {
	if o.From, o.To, err = a.Bounds(ctx); err != nil {
		return d, err
	}
	return Diagnose(ctx, a, o)
}

// intervals are the usual scrape intervals, in seconds.
var intervals = []time.Duration{1, 2, 5, 10, 15, 20, 30, 60, 120, 300}

// interval finds the scrape interval before a time: the usual one nearest to the median of all targets.
func interval(ctx context.Context, source Source, at time.Time) (time.Duration, error) {
	for _, span := range []time.Duration{time.Minute, 15 * time.Minute, time.Hour} {
		counts, err := source.Range(ctx, fmt.Sprintf("quantile(0.5, count_over_time(up{%s}[%s]))", anyJob, model.Duration(span)), at, at, time.Second)
		if err != nil {
			return 0, err
		}
		if len(counts) == 0 || counts[0].Points[0].V < 4 {
			continue
		}
		found := float64(span) / counts[0].Points[0].V / float64(time.Second)
		best := intervals[0]
		for _, one := range intervals { // a boundary scrape makes it look shorter
			if float64(one) <= 1.3*found {
				best = one
			}
		}
		return best * time.Second, nil
	}
	return 0, errNothing
}
