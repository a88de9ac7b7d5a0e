// Package chart draws numbers over time: units and number formats, scales and
// their ticks, lines, phases, marks, bars and waterfalls, as parts of a page or as
// an independent SVG. It knows values, not runs: package report knows the contents of
// a run's report.
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

// Subject says what a chart shows, and how it looks.
type Subject struct {
	Title     string        `json:"-"`
	Tells     string        `json:"-"`                  // one sentence on what it tells the reader
	MovesWith string        `json:"-" yaml:"movesWith"` // the faults and actions that it shows best
	Key       string        `json:"-"`                  // the key metric that it shows, if it is one of the four
	Unit      scenario.Unit `json:"unit"`
	Log       bool          `json:"log,omitempty"`                // a logarithmic axis: latencies span five decades
	Dips      bool          `json:"-"`                            // low values are the news: nodes Ready, not latency
	Level     float64       `json:"level,omitempty" yaml:"guide"` // a reference level, drawn as a line with its reason; 0: none
	LevelText string        `json:"-" yaml:"guideText"`
}

// Chart is lines over the time of a run, with what they tell. Draw sets the fields
// from Series on. Its JSON has what a script needs to draw it.
type Chart struct {
	ID string `json:"-"`
	Subject
	Missing string `json:"-"` // why there is nothing to draw
	Note    string `json:"-"`

	Series  []Line `json:"series"`
	Ticks   []Mark `json:"-"` // of the vertical axis
	Guide   *Mark  `json:"-"` // the line of the level, if it is in range
	Peak    string `json:"-"`
	Where   string `json:"-"`
	Long    bool   `json:"-"` // the names need a line each
	Summary string `json:"-"`
	scale   Scale
}

// New returns a chart whose address is made from a name.
func New(name string, of Subject) Chart { return Chart{ID: ID(Slug(name)), Subject: of} }

// Mark is a position in percent with its label.
type Mark struct{ At, Label string }

// Draw puts lines, the highest first, into the chart. when names a point of the
// axis.
func (d *Chart) Draw(lines []Line, axis Grid, when func(point int) string) {
	colour(lines)
	d.scale = d.scaleOf(lines)
	for i := range lines {
		lines[i].Path, lines[i].Dots = path(lines[i].Values, d.scale, PlotWidth, plotHeight)
	}
	d.Series = lines
	for _, t := range d.scale.Ticks {
		d.Ticks = append(d.Ticks, Mark{PercentAt(d.scale.y(t) / plotHeight), tickLabel(d.Unit, t)})
	}
	if d.Level > 0 && d.Level >= d.scale.Low && d.Level <= d.scale.High {
		d.Guide = &Mark{PercentAt(d.scale.y(d.Level) / plotHeight), d.LevelText}
	}
	top := lines[0]
	d.Peak = "Figures: peaks"
	switch {
	case d.Dips:
		// The last value counts: a peak of Ready nodes is no news.
		d.Peak = "Figures: at the end"
	case top.Peak > 0:
		d.Peak = "Peak " + Format(d.Unit, top.Peak)
		d.Where = "at " + when(top.PeakAt)
		if len(lines) > 1 {
			d.Where = "(" + top.Name + ") " + d.Where
		}
	}
	for _, l := range lines {
		d.Long = d.Long || len(lines) == 1 || TextWidth(l.Name)+TextWidth(l.Figure) > 14
	}
	d.Summary = fmt.Sprintf("%s. %d series over %s. %s.", d.Title, len(lines), Clock(axis.Seconds()), strings.TrimSpace(d.Peak+" "+d.Where))
}

func (d *Chart) scaleOf(lines []Line) Scale {
	low, high := math.Inf(1), 0.0
	for _, l := range lines {
		for _, v := range l.Values {
			if !math.IsNaN(v) && (v > 0 || !d.Log) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	// Show a level only if the values come near it.
	reach := map[bool]float64{true: 20, false: 2.5}[d.Log]
	if d.Level > high && d.Level <= high*reach {
		high = d.Level * 1.05
	}
	if d.Log && d.Level > 0 && d.Level < low && d.Level*reach >= low {
		low = d.Level
	}
	return newScale(low, high, d.Log, d.Unit)
}

// ID returns the address of a chart on the page, from its name.
func ID(name string) string { return "chart-" + name }

// Slug converts a title to a name: lower-case letters and digits, joined by dashes.
func Slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(title, "'", "")), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

// Name returns the chart's address without the common prefix.
func (d Chart) Name() string { return strings.TrimPrefix(d.ID, ID("")) }

// MostSeries is how many lines of one chart a person can distinguish.
const MostSeries = 8

// Line is one drawn series. Colour is its place in the palette; the peak is always
// shown.
type Line struct {
	Name   string  `json:"name"`
	Path   string  `json:"-"` // of the SVG
	Dots   string  `json:"-"` // the points without neighbours
	Colour int     `json:"colour"`
	Figure string  `json:"-"` // the peak, or the last value
	Values Values  `json:"values"`
	Peak   float64 `json:"-"`
	PeakAt int     `json:"-"` // -1: no value at all
}

// Values of a line have one value for each point of the axis; NaN, null in JSON, is a gap.
type Values []float64

// MarshalJSON writes each number in its shortest form.
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

// NewLine returns a line of values with its peak.
func NewLine(name string, values []float64) Line {
	l := Line{Name: name, Values: values, PeakAt: peak(values)}
	if l.PeakAt >= 0 {
		l.Peak = values[l.PeakAt]
	}
	return l
}

// Last returns the last value that is a number.
func Last(values []float64) float64 {
	for _, v := range slices.Backward(values) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// peak is the index of the largest value, the first of several; -1 if every value is
// NaN.
func peak(values []float64) (at int) {
	at = -1
	for i, v := range values {
		if !math.IsNaN(v) && (at < 0 || v > values[at]) {
			at = i
		}
	}
	return at
}

// SplitZero takes out lines that never left zero and returns their names: a line along
// the axis hides other lines, and its name says enough.
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

// colour gives each line its place in the palette. The verbs have the same colours in
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

// SetFigure sets the value next to the line's name: its last value if dips are the
// news, else its peak.
func (l *Line) SetFigure(u scenario.Unit, dips bool) {
	v := l.Peak
	if dips {
		v = Last(l.Values)
	}
	l.Figure = Format(u, v)
}
