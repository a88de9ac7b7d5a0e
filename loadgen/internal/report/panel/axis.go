package panel

import (
	"math"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/dashboards"
)

// high is the height of a drawing, in its own coordinates; it is as wide as it
// has points, less one. The page stretches it to its place. Whole numbers keep
// the page small: a unit is less than a pixel.
const high = 200

// axis maps values to heights.
type axis struct {
	low, top float64
	log      bool
	ticks    []float64
}

// newAxis spans the values of a panel with round ticks.
func newAxis(p dashboards.Panel, values [][]float64) axis {
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
		return axis{low: low, top: top, ticks: []float64{low, top}}
	}
	step := RoundStep((top - low) / 4)
	if p.Unit == "short" && whole(values) {
		step = max(step, 1) // there is no half a leader change
	}
	if p.Unit == "bytes" { // round in units of 1024
		unit := math.Pow(1024, math.Floor(math.Log((top-low)/4)/math.Log(1024)))
		step = RoundStep((top-low)/4/unit) * unit
	}
	a := axis{low: math.Floor(low/step) * step, top: math.Ceil(top/step-1e-9) * step}
	for v := a.low; v <= a.top+step/2; v += step {
		a.ticks = append(a.ticks, v)
	}
	return a
}

// whole tells whether all values are whole numbers.
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

// RoundStep is the next of 1, 2, 2.5 and 5 times a power of ten: a step between
// ticks.
func RoundStep(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*p >= v*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// logAxis has a tick at each power of ten, at every other if they are many.
func logAxis(low, top float64) axis {
	first, last := int(math.Floor(math.Log10(low)+1e-9)), int(math.Ceil(math.Log10(top)-1e-9))
	if last == first {
		last++
	}
	a := axis{low: math.Pow10(first), top: math.Pow10(last), log: true}
	for i := first; i <= last; i += max(1, (last-first+4)/5) {
		a.ticks = append(a.ticks, math.Pow10(i))
	}
	return a
}

// height of v in parts of the axis, from 0 at the bottom to 1; values outside are
// held at the edge.
func (a axis) height(v float64) float64 {
	low, top := a.low, a.top
	if a.log {
		v, low, top = math.Log10(max(v, a.low)), math.Log10(a.low), math.Log10(a.top)
	}
	return min(max((v-low)/(top-low), 0), 1)
}

// y is where v is drawn, 0 at the top.
func (a axis) y(v float64) int { return int(math.Round(high * (1 - a.height(v)))) }

// path draws values, one for each unit of width, as SVG path data: relative
// steps, broken at gaps. A lone point is a line of no length, which round ends
// make a dot.
func path(values []float64, y func(float64) int) string {
	var b strings.Builder
	lastX, lastY, pen := 0, 0, false
	for i, v := range values {
		if math.IsNaN(v) {
			pen = false
			continue
		}
		at := y(v)
		switch {
		case !pen:
			b.WriteString("M" + strconv.Itoa(i) + " " + strconv.Itoa(at))
			if i+1 == len(values) || math.IsNaN(values[i+1]) {
				b.WriteString("h0")
			} else {
				b.WriteString("l")
			}
		default:
			if s := b.String(); s[len(s)-1] != 'l' {
				b.WriteByte(' ')
			}
			b.WriteString(strconv.Itoa(i - lastX))
			if at >= lastY {
				b.WriteByte(' ')
			}
			b.WriteString(strconv.Itoa(at - lastY))
		}
		lastX, lastY, pen = i, at, true
	}
	return b.String()
}

// area is the stretch between two stacked lines, closed, part by part.
func area(under, over []float64, y func(float64) int) string {
	var b strings.Builder
	for from := 0; from < len(over); {
		if math.IsNaN(over[from]) {
			from++
			continue
		}
		to := from
		for to+1 < len(over) && !math.IsNaN(over[to+1]) {
			to++
		}
		b.WriteString("M")
		for i := from; i <= to; i++ {
			b.WriteString(strconv.Itoa(i) + " " + strconv.Itoa(y(over[i])) + " ")
		}
		for i := to; i >= from; i-- {
			b.WriteString(strconv.Itoa(i) + " " + strconv.Itoa(y(under[i])) + " ")
		}
		b.WriteString("z")
		from = to + 1
	}
	return b.String()
}
