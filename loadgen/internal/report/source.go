package report

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/panel"
)

// Charts ask what the dashboards' panels ask: see package panel.
type (
	// Source answers range queries of a run's archive.
	Source = panel.Source
	// Series is one series of a range query.
	Series = panel.Series
	// Point is one value of a series.
	Point = panel.Point
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// maxPoints is how many points of a series are drawn: about one for each
// pixel of a chart on a wide screen.
const maxPoints = 600

// grid is the time axis that all charts of a report share.
type grid struct {
	start time.Time
	step  time.Duration
	n     int // points: start, start+step, ... start+(n-1)*step
}

// newGrid lays at most maxPoints over the run, but no more than there were
// scrapes: between two of them there is nothing to see.
func newGrid(start, end time.Time, interval time.Duration) grid {
	length := max(end.Sub(start), time.Second)
	step := max(interval, time.Second, length/(maxPoints-1)).Round(time.Second)
	for length/step+1 > maxPoints {
		step += time.Second
	}
	n := int(length/step) + 1
	if length%step != 0 && n < maxPoints {
		n++ // the last stretch is shorter than a step
	}
	return grid{start: start, step: step, n: n}
}

func (g grid) seconds() float64 { return float64(g.n-1) * g.step.Seconds() }

func (g grid) end() time.Time { return g.start.Add(time.Duration(g.n-1) * g.step) }

// at is how many seconds after the grid's start t is.
func (g grid) at(t time.Time) float64 { return t.Sub(g.start).Seconds() }

// fraction is where t lies on the axis, from 0 to 1.
func (g grid) fraction(t time.Time) float64 {
	if g.seconds() <= 0 {
		return 0
	}
	return min(max(g.at(t)/g.seconds(), 0), 1)
}

// sample puts points on the grid. A cell that gets several keeps the largest
// (the smallest if dips matter more): a mean would hide what a report is
// read for. Where there is no point, or none that is a number, is a gap (NaN).
func (g grid) sample(points []Point, dips bool) []float64 {
	values := make([]float64, g.n)
	for i := range values {
		values[i] = math.NaN()
	}
	for _, p := range points {
		i := int(math.Round(g.at(p.T) / g.step.Seconds()))
		if i < 0 || i >= g.n || math.IsNaN(p.V) || math.IsInf(p.V, 0) {
			continue
		}
		have := values[i]
		if math.IsNaN(have) || (p.V > have) != dips {
			values[i] = round6(p.V)
		}
	}
	return values
}

// round6 keeps six significant digits: more than anybody reads, and the page
// and its script round the same number.
func round6(v float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return math.NaN() // cannot be: it was just written
	}
	return v
}

// peak is the place of the largest value, the first of several; -1 where
// there is none.
func peak(values []float64) (at int) {
	at = -1
	for i, v := range values {
		if !math.IsNaN(v) && (at < 0 || v > values[at]) {
			at = i
		}
	}
	return at
}
