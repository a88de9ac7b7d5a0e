package chart

import (
	"math"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// PlotWidth and plotHeight are the size of a plot in its coordinates. These are not pixels, because the page
// stretches the plot to fit. Lines keep their width (vector-effect).
const (
	PlotWidth  = 1000.0
	plotHeight = 100.0
)

// Scale maps values to heights in a plot.
type Scale struct {
	Low, High float64
	Log       bool
	Ticks     []float64
}

// Share returns the position of v on the scale, from 0 (bottom) to 1 (top). It returns 0 or 1 for values outside the
// scale.
func (s Scale) Share(v float64) float64 {
	low, high := s.Low, s.High
	if s.Log {
		v, low, high = math.Log10(max(v, s.Low)), math.Log10(s.Low), math.Log10(s.High)
	}
	return min(max((v-low)/(high-low), 0), 1)
}

// y returns the height of v in a plot, 0 at the top.
func (s Scale) y(v float64) float64 { return plotHeight * (1 - s.Share(v)) }

// newScale returns a scale that covers low to high, with ticks at round values. For counts, ticks are integers.
func newScale(low, high float64, log bool, u scenario.Unit) Scale {
	if log && high > 0 {
		return logScale(low, high)
	}
	if high <= 0 {
		high = 1
	}
	step := RoundStep(high / 4)
	if u == scenario.Count {
		step = math.Ceil(step)
	}
	s := Scale{High: math.Ceil(high/step-1e-9) * step}
	for v := 0.0; v <= s.High+step/2; v += step {
		s.Ticks = append(s.Ticks, v)
	}
	return s
}

func logScale(low, high float64) Scale {
	if low <= 0 || low > high {
		low = high / 10
	}
	at := func(i int) float64 { // ... 0.1 0.2 0.5 1 2 5 10 ...
		return []float64{1, 2, 5}[((i%3)+3)%3] * math.Pow(10, math.Floor(float64(i)/3))
	}
	first, last := 3*int(math.Floor(math.Log10(low))), 3*int(math.Floor(math.Log10(low)))
	for at(first+1) <= low*(1+1e-9) {
		first++
	}
	for last < first+2 || at(last) < high*(1-1e-9) {
		last++
	}
	s := Scale{Low: at(first), High: at(last), Log: true}
	for i := first; i <= last; i++ {
		// Use 1, 2 and 5 of each decade, or only the decades if there are many.
		if last-first <= 5 || i%3 == 0 {
			s.Ticks = append(s.Ticks, at(i))
		}
	}
	for len(s.Ticks) > 5 {
		var fewer []float64
		for i := 0; i < len(s.Ticks); i += 2 {
			fewer = append(fewer, s.Ticks[i])
		}
		s.Ticks = fewer
	}
	return s
}

// TimeTicks returns round times in seconds for the ticks of a time axis. length is the length of the axis in seconds,
// and most the maximum number of intervals between ticks.
func TimeTicks(length float64, most int) []float64 {
	steps := []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if length/s <= float64(most) {
			step = s
			break
		}
	}
	var ticks []float64
	for t := 0.0; t <= length; t += step {
		ticks = append(ticks, t)
	}
	return ticks
}

// tickLabel formats the label of a tick. It shortens counts and rates of 10,000 or more, for example to "20k".
func tickLabel(u scenario.Unit, v float64) string {
	switch u {
	case UnitCores:
		return Number(v, 3)
	case scenario.Count, scenario.PerSec:
		if v >= 10_000 {
			return Scaled(v, 3, []string{"", "k", "M", "G", "T"})
		}
	}
	return Format(u, v)
}

// RoundStep rounds v up to 1, 2, 2.5 or 5 times a power of ten, for the step between ticks.
func RoundStep(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*p >= v*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// path returns two SVG paths for values: line, with breaks at NaN values, and dots, for points without neighbours. A
// dot is a line of length 0 with round ends.
func path(values []float64, s Scale, width, height float64) (line, dots string) {
	var b, lone strings.Builder
	dx := width / max(float64(len(values)-1), 1)
	pen := false
	for i, v := range values {
		if math.IsNaN(v) {
			pen = false
			continue
		}
		x, y := Coordinate(float64(i)*dx), Coordinate(s.y(v)*height/plotHeight)
		switch {
		case pen:
			b.WriteString("L" + x + " " + y)
		case i+1 < len(values) && !math.IsNaN(values[i+1]):
			b.WriteString("M" + x + " " + y)
		default:
			lone.WriteString("M" + x + " " + y + "h0")
		}
		pen = true
	}
	return b.String(), lone.String()
}

// Coordinate formats a coordinate of a drawing, rounded to a tenth.
func Coordinate(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// PercentAt formats a fraction from 0 to 1 as a percentage without the sign, such as "12.50".
func PercentAt(f float64) string { return strconv.FormatFloat(f*100, 'f', 2, 64) }

// CompactPath returns short SVG path data for values that are one unit apart. The path has relative steps in integers
// and breaks at NaN. A point without neighbours becomes a line of length 0, which looks like a dot if line ends are
// round.
func CompactPath(values []float64, y func(float64) int) string {
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

// Area returns SVG path data for the area between two stacked lines. It has a closed path for each stretch of values
// without NaN.
func Area(under, over []float64, y func(float64) int) string {
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
