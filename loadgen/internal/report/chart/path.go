package chart

import (
	"math"
	"strconv"
	"strings"
)

// path draws values as a line, broken at gaps; lone points are dots (lines of
// no length with round ends).
func path(values []float64, s scale) (line, dots string) {
	return pathIn(values, s, PlotWidth, plotHeight)
}

// pathIn is path in a plot of another size.
func pathIn(values []float64, s scale, width, height float64) (line, dots string) {
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
