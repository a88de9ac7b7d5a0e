package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

// OfArchive diagnoses a recorded run. The diagnosed data ends at the last phase boundary, or at the last scrape if
// o.Cut is set. The data begins at o.From if that is within the run, otherwise at the first phase boundary. If
// o.Reference is set, the whole reference run is the comparison period.
func OfArchive(ctx context.Context, a *archive.Archive, o Options) (d result.Diagnosis, err error) {
	first, last, err := a.Bounds(ctx)
	if err != nil {
		return d, err
	}
	if o.Cut {
		if _, last, err = a.Scraped(ctx); err != nil {
			return d, err
		}
	}
	if o.To = last; o.From.Before(first) || !o.From.Before(last) {
		o.From = first
	}
	if o.Reference == nil {
		return Diagnose(ctx, a, o)
	}
	source, calm, err := after(ctx, a, o.Reference, o.From)
	if err != nil {
		return d, err
	}
	if o.Calm = calm; o.Under == (result.Span{}) {
		o.Under = result.Span{From: o.From, To: o.To}
	}
	return Diagnose(ctx, source, o)
}

// referenced is a Source with the data of a run and, at earlier times, the data of a reference run. It shifts the times
// of the reference run, so that its data ends two hours before the diagnosed run begins.
type referenced struct {
	run, reference *archive.Archive
	ends           time.Time     // end of the reference run after the shift
	moved          time.Duration // length of the shift: added to the times of the reference run
}

// after returns a source with the data of both runs. It shifts the times of the reference run to before `began`, the
// start of the diagnosed run. calm is the time span of the reference run after the shift.
func after(ctx context.Context, run, reference *archive.Archive, began time.Time) (r referenced, calm result.Span, err error) {
	first, last, err := reference.Bounds(ctx)
	if err != nil {
		return r, calm, fmt.Errorf("the reference run: %w", err)
	}
	r = referenced{run: run, reference: reference, ends: began.Add(-2 * apart)}
	r.moved = r.ends.Sub(last)
	return r, result.Span{From: first.Add(r.moved), To: r.ends}, nil
}

// Range implements Source.
func (r referenced) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]archive.Series, error) {
	if end.After(r.ends) {
		return r.run.Range(ctx, expr, start, end, step)
	}
	all, err := r.reference.Range(ctx, expr, start.Add(-r.moved), end.Add(-r.moved), step)
	for _, one := range all {
		for i := range one.Points {
			one.Points[i].T = one.Points[i].T.Add(r.moved)
		}
	}
	return all, err
}

// intervals are the usual scrape intervals, as numbers of seconds.
var intervals = []time.Duration{1, 2, 5, 10, 15, 20, 30, 60, 120, 300}

// Interval returns the longest scrape interval of any job before `at`, rounded to a usual interval. The interval of a
// job is the median of the gaps between its scrapes, weighted by their lengths. The mean would be wrong, because extra
// scrapes (such as at phase boundaries) split some gaps, and lost scrapes merge some.
func Interval(ctx context.Context, source Source, at time.Time) (longest time.Duration, err error) {
	known := map[string]bool{} // by job
	none := true
	for _, span := range []struct{ length, step time.Duration }{{5 * time.Minute, time.Second}, {time.Hour, 10 * time.Second}} {
		scrapes, err := source.Range(ctx, fmt.Sprintf("timestamp(up{%s})", anyJob), at.Add(-span.length), at, span.step)
		if err != nil {
			return 0, err
		}
		gaps := gapsOf(scrapes)
		for job := range gaps {
			if !known[job] && len(gaps[job]) >= minScrapes {
				known[job], longest = true, max(longest, nearestInterval(gaps[job]))
			}
		}
		if none = none && len(scrapes) == 0; longest > 0 && len(known) == len(gaps) {
			break
		}
	}
	switch {
	case longest > 0:
		return longest, nil
	case none:
		return 0, Nothing
	}
	return 0, tooLittle(fmt.Sprintf("fewer than %d scrapes were recorded in that time", minScrapes))
}

// UpToDate returns an error if the last scrape before now is more than staleAfter scrape intervals old. After that
// time, rates have no value, and gauges keep their last value.
func UpToDate(ctx context.Context, source Source, now time.Time, step time.Duration) error {
	last, err := source.Range(ctx, fmt.Sprintf("max(timestamp(up{%s}))", anyJob), now, now, step)
	if err != nil || len(last) == 0 {
		return err
	}
	at := time.UnixMilli(int64(1000 * last[0].Points[len(last[0].Points)-1].V))
	if age := now.Sub(at); age > staleAfter*step {
		return tooLittle(fmt.Sprintf("the last scrape was at %s UTC, %s ago: there is no current data (is the cluster still scraped, and are the clocks right?)",
			at.UTC().Format(time.DateTime), age.Round(time.Second)))
	}
	return nil
}

// staleAfter is the maximum age of the last scrape, in intervals.
const staleAfter = 4

// gapsOf returns, for each job, the times in seconds between consecutive scrapes of its targets, sorted.
func gapsOf(scrapes []archive.Series) map[string][]float64 {
	gaps := map[string][]float64{}
	for _, s := range scrapes {
		of := gaps[s.Labels[model.JobLabel]]
		for i := range s.Points {
			if i > 0 && s.Points[i].V > s.Points[i-1].V {
				of = append(of, s.Points[i].V-s.Points[i-1].V)
			}
		}
		slices.Sort(of)
		gaps[s.Labels[model.JobLabel]] = of
	}
	return gaps
}

func nearestInterval(gaps []float64) time.Duration {
	total, sum := 0.0, 0.0
	for _, g := range gaps {
		total += g
	}
	middle := gaps[len(gaps)-1]
	for _, g := range gaps {
		if sum += g; sum >= total/2 {
			middle = g
			break
		}
	}
	return time.Second * slices.MinFunc(intervals, func(a, b time.Duration) int {
		return cmp.Compare(math.Abs(math.Log(float64(a)/middle)), math.Abs(math.Log(float64(b)/middle)))
	})
}
