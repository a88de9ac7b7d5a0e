// Package chart draws numbers over time: lines, phases, marks, bars and waterfalls, with scales, ticks, units and
// number formats. The drawings are parts of a page or separate SVG files. The package handles values; package report
// decides what a report shows of a run.
package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Subject holds the declaration of a chart: what the chart shows and how it is drawn.
type Subject struct {
	Title     string        `json:"-"`
	Tells     string        `json:"-"`                  // sentence that explains the chart
	MovesWith string        `json:"-" yaml:"movesWith"` // the faults and actions that the chart shows best
	Key       string        `json:"-"`                  // the name of the key metric that the chart shows, or ""
	Unit      scenario.Unit `json:"unit"`
	Log       bool          `json:"log,omitempty"`                // the value axis is logarithmic, as for latencies
	Dips      bool          `json:"-"`                            // low values matter, as for Ready nodes; false: high values
	Level     float64       `json:"level,omitempty" yaml:"guide"` // a reference value, drawn as a line; 0 means none
	LevelText string        `json:"-" yaml:"guideText"`
}

// Chart is a line chart over the time of a run. Draw sets Series and all fields after it. The JSON form has the data
// that the script of the page needs.
type Chart struct {
	ID string `json:"-"`
	Subject
	Missing string `json:"-"` // reason why there is nothing to draw; empty: there is a chart
	Note    string `json:"-"`

	Series  []Line `json:"series"`
	Ticks   []Mark `json:"-"` // the ticks of the vertical axis
	Guide   *Mark  `json:"-"` // the line for Level; nil if Level is outside the scale
	Peak    string `json:"-"`
	Where   string `json:"-"`
	Long    bool   `json:"-"` // whether a name in the legend needs a whole line
	Summary string `json:"-"`
	Links   []Link `json:"-"` // links to parts of the page that explain the values
	scale   Scale
}

// New returns a chart of a subject. The ID of the chart is made from name.
func New(name string, of Subject) Chart { return Chart{ID: ID(Slug(name)), Subject: of} }

// Link is a link to the element of the page with the ID Target.
type Link struct{ Text, Target string }

// Mark is a label on an axis. At is its position in percent of the axis.
type Mark struct{ At, Label string }

// Draw colours lines and draws them. `when` returns a text for the time of a point, such as "2:05, in storm".
func (d *Chart) Draw(lines []Line, axis Grid, when func(point int) string) {
	colour(lines)
	d.DrawColoured(lines, axis, when)
}

// DrawColoured draws lines that have a colour.
func (d *Chart) DrawColoured(lines []Line, axis Grid, when func(point int) string) {
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
	top := slices.MinFunc(lines, ByPeak)
	d.Peak = "The legend shows peaks"
	switch {
	case d.Dips:
		// Show the last value, because a peak of Ready nodes is not interesting.
		d.Peak = "The legend shows last values"
	case top.Peak > 0:
		d.Peak = "Peak " + Format(d.Unit, top.Peak)
		d.Where = "at " + when(top.PeakAt)
		if len(lines) > 1 {
			d.Where = "(" + top.Name + ") " + d.Where
		}
	}
	for _, l := range lines {
		d.Long = d.Long || len(lines) == 1 || terminal.TextWidth(l.Name)+terminal.TextWidth(l.Figure) > 14
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
	// Show the reference level only if the values come near it.
	reach := map[bool]float64{true: 20, false: 2.5}[d.Log]
	if d.Level > high && d.Level <= high*reach {
		high = d.Level * 1.05
	}
	if d.Log && d.Level > 0 && d.Level < low && d.Level*reach >= low {
		low = d.Level
	}
	return newScale(low, high, d.Log, d.Unit)
}

// ID returns the HTML id of the chart with the given name.
func ID(name string) string { return "chart-" + name }

// Slug converts a title to a name: lower-case words of letters and digits, joined by dashes.
func Slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(title, "'", "")), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

// Name returns the chart's ID without the common prefix.
func (d Chart) Name() string { return strings.TrimPrefix(d.ID, ID("")) }

// MaxSeries is the maximum number of lines in a chart. Readers cannot distinguish more.
const MaxSeries = 8

// Line is one drawn series. Colour is an index in the palette.
type Line struct {
	Name   string  `json:"name"`
	Path   string  `json:"-"` // SVG path of the line
	Dots   string  `json:"-"` // SVG path of the points between two gaps, drawn as dots
	Colour int     `json:"colour"`
	Figure string  `json:"-"` // text next to the name in the legend: the peak or the last value
	Values Values  `json:"values"`
	Peak   float64 `json:"-"`
	PeakAt int     `json:"-"` // index of the peak; -1 if the line has no value
}

// Values holds the values of a line, one for each point of the axis. NaN, which is null in JSON, is a gap.
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

// NewLine returns a line with the given values and their peak.
func NewLine(name string, values []float64) Line {
	l := Line{Name: name, Values: values, PeakAt: peak(values)}
	if l.PeakAt >= 0 {
		l.Peak = values[l.PeakAt]
	}
	return l
}

// Last returns the last value that is not NaN, or NaN if none exists.
func Last(values []float64) float64 {
	for _, v := range slices.Backward(values) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// peak returns the index of the first of the largest values, or -1 if every value is NaN.
func peak(values []float64) (at int) {
	at = -1
	for i, v := range values {
		if !math.IsNaN(v) && (at < 0 || v > values[at]) {
			at = i
		}
	}
	return at
}

// SplitZero separates the lines that are always zero, because these would hide other lines on the axis. It returns the
// other lines, and the names of the zero lines as one text.
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
	if n := len(zero); n > MaxSeries {
		zero = append(zero[:MaxSeries], fmt.Sprintf("%s more", Count(n-MaxSeries)))
	}
	return rest, strings.Join(zero, ", ")
}

// colour sets the colour of each line. Each verb has the same colour in every chart.
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

// ByPeak compares lines for sorting: the highest peak first, then by name.
func ByPeak(x, y Line) int {
	return cmp.Or(cmp.Compare(y.Peak, x.Peak), cmp.Compare(x.Name, y.Name))
}

// SetFigure sets Figure, which the legend shows next to the name of the line: the last value if dips is set, otherwise
// the peak.
func (l *Line) SetFigure(u scenario.Unit, dips bool) {
	v := l.Peak
	if dips {
		v = Last(l.Values)
	}
	l.Figure = Format(u, v)
}
