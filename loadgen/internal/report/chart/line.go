package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// MostSeries is how many lines of one chart a person can tell apart.
const MostSeries = 8

// Line is one drawn series. Colour is its place in the palette; the peak is always
// shown.
type Line struct {
	Name   string  `json:"name"`
	Path   string  `json:"-"` // of the SVG
	Dots   string  `json:"-"` // its points without neighbours
	Colour int     `json:"colour"`
	Figure string  `json:"-"` // the peak, or where it ended
	Values Values  `json:"values"`
	Peak   float64 `json:"-"`
	PeakAt int     `json:"-"` // -1: no value at all
}

// Values of a line, one for each point of the axis; NaN, null in JSON, is a gap.
type Values []float64

// MarshalJSON writes each number as short as it can be.
func (v Values) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, f := range v {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(f) {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendFloat(out, f, 'g', -1, 64)
		}
	}
	return append(out, ']'), nil
}

// NewLine is a line of values, with its peak found.
func NewLine(name string, values []float64) Line {
	l := Line{Name: name, Values: values, PeakAt: peak(values)}
	if l.PeakAt >= 0 {
		l.Peak = values[l.PeakAt]
	}
	return l
}

// Last is the last value that is one.
func Last(values []float64) float64 {
	for _, v := range slices.Backward(values) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
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

// SplitZero takes out lines that never left zero and names them: a line along
// the axis hides the others, and says no more than these words.
func SplitZero(lines []Line) (rest []Line, names string) {
	var zero []string
	for _, l := range lines {
		if l.Peak == 0 && !slices.ContainsFunc(l.Values, func(v float64) bool { return v < 0 }) {
			zero = append(zero, l.Name)
		} else {
			rest = append(rest, l)
		}
	}
	slices.Sort(zero)
	if n := len(zero); n > MostSeries {
		zero = append(zero[:MostSeries], fmt.Sprintf("%s more", Count(n-MostSeries)))
	}
	return rest, strings.Join(zero, ", ")
}

// colour gives each line its place in the palette. The verbs have the same in
// every chart.
func colour(lines []Line) {
	fixed := []string{"GET", "LIST", "POST", "PUT", "PATCH", "DELETE", "WATCH", "APPLY"}
	byName := make([]*Line, len(lines))
	for i := range lines {
		byName[i] = &lines[i]
	}
	slices.SortStableFunc(byName, func(x, y *Line) int { return cmp.Compare(x.Name, y.Name) })
	taken := map[int]bool{}
	var free []*Line
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

// ByPeak orders lines: the highest peak first, then by name.
func ByPeak(x, y Line) int {
	return cmp.Or(cmp.Compare(y.Peak, x.Peak), cmp.Compare(x.Name, y.Name))
}

// SetFigure sets the value that stands beside the line's name: its last where dips
// are the news, or else its peak.
func (l *Line) SetFigure(u scenario.Unit, dips bool) {
	v := l.Peak
	if dips {
		v = Last(l.Values)
	}
	l.Figure = Format(u, v)
}
