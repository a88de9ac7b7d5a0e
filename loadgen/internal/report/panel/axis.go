package panel

import (
	"math"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// high is the height of a drawing, in its own coordinates; it is as wide as it
// has points, less one. The page stretches it to its place. Whole numbers keep
// the page small: a unit is less than a pixel.
const high = 200

// newAxis spans the values of a panel with round ticks.
func newAxis(p dashboards.Panel, values [][]float64) chart.Scale {
	low, top := math.Inf(1), math.Inf(-1)
	for _, line := range values {
		for _, v := range line {
			if !math.IsNaN(v) && (v > 0 || !p.Log) {
				low, top = min(low, v), max(top, v)
			}
		}
	}
	if p.Log && top > 0 {
		if p.Min != nil {
			low = max(low, min(*p.Min, top/10))
		}
		return logAxis(low, top)
	}
	if p.Min != nil {
		low = min(low, *p.Min)
	}
	if p.SoftMax != nil {
		top = max(top, *p.SoftMax)
	}
	if p.Max != nil {
		top = *p.Max // what is over it is drawn at the edge, as Grafana does; the legend has its value
	}
	if !(top > low) { // nothing, or nothing but zeros
		low = min(low, 0)
		if math.IsInf(low, 0) {
			low = 0
		}
		top = max(top, 1)
		return chart.Scale{Low: low, High: top, Ticks: []float64{low, top}}
	}
	step := chart.RoundStep((top - low) / 4)
	if p.Unit == "short" && whole(values) {
		step = max(step, 1) // there is no half a leader change
	}
	if p.Unit == "bytes" { // round in units of 1024
		unit := math.Pow(1024, math.Floor(math.Log((top-low)/4)/math.Log(1024)))
		step = chart.RoundStep((top-low)/4/unit) * unit
	}
	a := chart.Scale{Low: math.Floor(low/step) * step, High: math.Ceil(top/step-1e-9) * step}
	for v := a.Low; v <= a.High+step/2; v += step {
		a.Ticks = append(a.Ticks, v)
	}
	return a
}

// whole reports whether all values are whole numbers.
func whole(lines [][]float64) bool {
	for _, line := range lines {
		for _, v := range line {
			if !math.IsNaN(v) && v != math.Trunc(v) {
				return false
			}
		}
	}
	return true
}

// logAxis has a tick at each power of ten, at every other if they are many.
func logAxis(low, top float64) chart.Scale {
	first, last := int(math.Floor(math.Log10(low)+1e-9)), int(math.Ceil(math.Log10(top)-1e-9))
	if last == first {
		last++
	}
	a := chart.Scale{Low: math.Pow10(first), High: math.Pow10(last), Log: true}
	for i := first; i <= last; i += max(1, (last-first+4)/5) {
		a.Ticks = append(a.Ticks, math.Pow10(i))
	}
	return a
}

// height is where v is drawn, 0 at the top.
func height(s chart.Scale) func(v float64) int {
	return func(v float64) int { return int(math.Round(high * (1 - s.Share(v)))) }
}
