package chart

import (
	"math"
	"strconv"
	"strings"
)

// path draws values as a line, broken at gaps; lone points are dots (lines of
// no length with round ends).
func path(values []float64, s Scale) (line, dots string) {
	return pathIn(values, s, PlotWidth, plotHeight)
}

// pathIn is path in a plot of another size.
func pathIn(values []float64, s Scale, width, height float64) (line, dots string) {
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

// Coordinate writes a coordinate of a drawing, to a tenth.
func Coordinate(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// PercentAt writes a share, from 0 to 1, in percent.
func PercentAt(f float64) string { return strconv.FormatFloat(f*100, 'f', 2, 64) }

// CompactPath draws values, one for each unit of width, as SVG path data of whole
// numbers: relative steps, broken at gaps. A lone point is a line of no length, which round ends
// make a dot.
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

// Area is the stretch between two stacked lines, closed, part by part.
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
