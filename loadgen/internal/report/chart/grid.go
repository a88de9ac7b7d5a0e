package chart

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// MaxPoints is the maximum number of points of a series: about one for each pixel of a wide chart.
const MaxPoints = 600

// Grid is the time axis that all charts of a report share.
type Grid struct {
	Start time.Time
	Step  time.Duration
	N     int // number of points, which are at Start, Start+Step, ... Start+(N-1)*Step
}

// NewGrid returns a grid from start to end with at most MaxPoints points. Points are at least a
// scrape interval apart, because there is no data between two scrapes.
func NewGrid(start, end time.Time, interval time.Duration) Grid {
	length := max(end.Sub(start), time.Second)
	step := max(interval, time.Second, length/(MaxPoints-1)).Round(time.Second)
	for length/step+1 > MaxPoints {
		step += time.Second
	}
	n := int(length/step) + 1
	if length%step != 0 && n < MaxPoints {
		n++ // the last step reaches beyond the end
	}
	return Grid{Start: start, Step: step, N: n}
}

// Seconds returns the length of the axis in seconds.
func (g Grid) Seconds() float64 { return float64(g.N-1) * g.Step.Seconds() }

// End returns the time of the last point.
func (g Grid) End() time.Time { return g.Start.Add(time.Duration(g.N-1) * g.Step) }

// At returns the seconds from the grid's start to t.
func (g Grid) At(t time.Time) float64 { return t.Sub(g.Start).Seconds() }

// Fraction returns the position of t on the axis, from 0 to 1.
func (g Grid) Fraction(t time.Time) float64 {
	if g.Seconds() <= 0 {
		return 0
	}
	return min(max(g.At(t)/g.Seconds(), 0), 1)
}

// Sample returns one value for each grid point. If several points fall on one grid point, it keeps the largest value,
// or the smallest if dips is set; a mean would hide the extremes. NaN marks a grid point without a finite value.
func (g Grid) Sample(points []Point, dips bool) []float64 {
	values := make([]float64, g.N)
	for i := range values {
		values[i] = math.NaN()
	}
	for _, p := range points {
		i := int(math.Round(g.At(p.T) / g.Step.Seconds()))
		if i < 0 || i >= g.N || math.IsNaN(p.V) || math.IsInf(p.V, 0) {
			continue
		}
		have := values[i]
		if math.IsNaN(have) || (p.V > have) != dips {
			values[i] = Round6(p.V)
		}
	}
	return values
}

// Round6 rounds v to six significant digits, which is more than a reader needs. The page and its script then show the
// same number.
func Round6(v float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return math.NaN() // impossible, because the text was just formatted
	}
	return v
}

// Source evaluates range queries over the recorded metrics of a run. It is safe for concurrent use.
type Source interface {
	// Range evaluates a PromQL expression at start, start+step, ... end. Series have points only at times with a value.
	Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]Series, error)
}

type (
	// Series is one series of a range query.
	Series = archive.Series
	// Point is one value of a series.
	Point = archive.Point
)
