package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// path draws values as a line, broken at gaps; lone points are dots (lines of
// no length with round ends).
func path(values []float64, s scale) (line, dots string) {
	return pathIn(values, s, plotWidth, plotHeight)
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
		x, y := coordinate(float64(i)*dx), coordinate(s.y(v)*height/plotHeight)
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

func coordinate(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

func percentAt(f float64) string { return strconv.FormatFloat(f*100, 'f', 2, 64) }

// when names a point of the grid: "2:05, in storm".
func (a *artist) when(i int) string {
	t := a.grid.start.Add(time.Duration(i) * a.grid.step)
	s := clock(a.grid.at(t))
	for _, p := range a.result.Measurements.Phases {
		if !t.Before(p.Start) && !t.After(p.End) {
			return s + ", in " + clean(p.Name)
		}
	}
	return s
}

// colour gives each line its place in the palette. The verbs have the same in
// every chart.
func colour(lines []line) {
	fixed := []string{"GET", "LIST", "POST", "PUT", "PATCH", "DELETE", "WATCH", "APPLY"}
	byName := make([]*line, len(lines))
	for i := range lines {
		byName[i] = &lines[i]
	}
	slices.SortStableFunc(byName, func(x, y *line) int { return cmp.Compare(x.Name, y.Name) })
	taken := map[int]bool{}
	var free []*line
	for _, l := range byName {
		if at := slices.Index(fixed, l.Name); at >= 0 && !taken[at] {
			l.Colour, taken[at] = at, true
		} else {
			free = append(free, l)
		}
	}
	next := 0
	for _, l := range free {
		for taken[next] {
			next++
		}
		l.Colour, taken[next] = next, true
	}
}
