package panel

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// maxRows is the maximum number of rows of a table or of a state timeline.
const maxRows = 24

// picture holds the drawing of one panel for the page template.
type picture struct {
	dashboards.Panel
	// Empty is the reason why there is nothing to draw.
	Empty  string
	Lines  []line
	Ticks  []tick
	Levels []level
	Stats  []figure
	Head   []string
	Rows   [][]string
	States []state
	Cells  []cells // the cells of a heatmap, from pale to strong
	Note   string
	// Covers is the time that each value of a chart covers, such as "8 s". It is empty if not all values are rates.
	Covers string
}

// line is one drawn series. Its Colour is an index in the palette.
type line struct {
	chart.Line
	Max, Last string
	Fill      string
}

type tick struct {
	Y     int
	Label string
}

// level is a threshold, with its vertical position, its value and its colour.
type level struct {
	Y            int
	Text, Colour string
}

type figure struct{ Name, Value, Colour string }

// state is a row of a state timeline. Spans has one path per colour, for the times with that colour.
type state struct {
	Name  string
	Spans []colouredPath
}

type colouredPath struct{ Colour, Path string }

// cells holds the cells of a heatmap that have the same shade.
type cells struct {
	Shade int
	Path  string
}

type artist struct {
	span   Span
	step   time.Duration
	points int
}

func (a artist) draw(answers []answer) picture {
	out := picture{Panel: answers[0].panel}
	var lines []line
	for _, x := range answers {
		if x.err != nil {
			out.Note = "A query failed: " + terminal.Clean(x.err.Error()) + "."
		}
		for _, s := range x.series {
			if l := chart.NewLine(name(x.query.Legend, s.Labels), a.sample(s.Points)); l.PeakAt >= 0 {
				lines = append(lines, line{Line: l})
			}
		}
	}
	if len(lines) == 0 {
		out.Empty = nothing(answers)
		return out
	}
	switch out.Kind {
	case "stat":
		out.stats(lines)
	case "table":
		out.table(answers)
	case "heatmap":
		out.heatmap(answers, a)
	case "state-timeline":
		out.timeline(lines)
	default:
		out.chart(lines)
		out.Covers = covers(answers)
	}
	return out
}

// covers returns the ranges of the rates in the queries of a panel, or "" if a query has none.
func covers(answers []answer) string {
	var all []string
	for _, a := range answers {
		if len(a.ranges) == 0 {
			return ""
		}
		for _, r := range a.ranges {
			if text := chart.Grafana("s", r.Seconds()); !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return strings.Join(all, " or ")
}

// nothing returns the text for a panel without data: the error of a query, or the documented reason for missing data.
func nothing(answers []answer) string {
	for _, a := range answers {
		if a.err != nil {
			return "The query failed: " + terminal.Clean(a.err.Error()) + "."
		}
	}
	if r := answers[0].query.Reason; r != nil && r.Report != "" {
		return r.Report
	}
	return cmp.Or(answers[0].panel.NoData(), "Nothing was recorded.")
}

// sample returns one value for each grid point of the drawing. A grid point without a value is NaN. The last grid point
// may be up to a step before the end of the span. It then gets the value at the end.
func (a artist) sample(points []chart.Point) []float64 {
	values := make([]float64, a.points)
	for i := range values {
		values[i] = math.NaN()
	}
	for _, p := range points {
		i := int(math.Round(float64(p.T.Sub(a.span.Start)) / float64(a.step)))
		if i >= 0 && !p.T.After(a.span.End) && !math.IsInf(p.V, 0) {
			values[min(i, a.points-1)] = p.V
		}
	}
	return values
}

// first returns the index of the first value of the line that is not NaN, or -1.
func (l line) first() int {
	return slices.IndexFunc(l.Values, func(v float64) bool { return !math.IsNaN(v) })
}

// byPeak sorts lines by their peaks, the highest first, and returns at most `most` of them.
func (out *picture) byPeak(lines []line, most int) []line {
	slices.SortStableFunc(lines, func(x, y line) int { return chart.ByPeak(x.Line, y.Line) })
	if len(lines) > most {
		out.Note = strings.TrimSpace(fmt.Sprintf("%s %d of %d lines are shown: those with the highest peaks.", out.Note, most, len(lines)))
		lines = lines[:most]
	}
	return lines
}

func (out *picture) chart(lines []line) {
	lines = out.byPeak(lines, chart.MaxSeries)
	var drawn [][]float64
	for _, l := range lines {
		drawn = append(drawn, l.Values)
	}
	if out.Stacked {
		drawn = stack(drawn)
	}
	axis := newAxis(out.Panel, drawn)
	y := height(axis)
	for i := range lines {
		l := &lines[i]
		l.Colour, l.Max, l.Last = i, chart.Grafana(out.Unit, l.Peak), chart.Grafana(out.Unit, chart.Last(l.Values))
		l.Path = chart.CompactPath(drawn[i], y)
		if out.Stacked {
			under := make([]float64, len(drawn[i]))
			if i > 0 {
				under = drawn[i-1]
			}
			l.Fill = chart.Area(under, drawn[i], y)
		}
	}
	out.Lines = lines
	for _, t := range axis.Ticks {
		out.Ticks = append(out.Ticks, tick{y(t), chart.Grafana(out.Unit, t)})
	}
	for _, s := range out.Steps() {
		if out.DrawsSteps() && s.Value != nil && *s.Value >= axis.Low && *s.Value <= axis.High {
			out.Levels = append(out.Levels, level{y(*s.Value), threshold(out.Unit, *s.Value), s.Color})
		}
	}
}

// stack adds to each line the values of all lines before it, which are drawn below it. A gap counts as 0.
func stack(lines [][]float64) [][]float64 {
	var all [][]float64
	for i, l := range lines {
		sum := make([]float64, len(l))
		for j, v := range l {
			if !math.IsNaN(v) {
				sum[j] = v
			}
			if i > 0 {
				sum[j] += all[i-1][j]
			}
		}
		all = append(all, sum)
	}
	return all
}

func (out *picture) stats(lines []line) {
	steps := out.Steps()
	for _, l := range out.byPeak(lines, chart.MaxSeries) {
		v := chart.Last(l.Values)
		if out.Calc == "max" {
			v = l.Peak
		}
		out.Stats = append(out.Stats, figure{l.Name, chart.Grafana(out.Unit, v), colourOf(steps, v)})
	}
}

// colourOf returns the CSS class for the colour of the highest threshold that v reaches.
func colourOf(steps []dashboards.Step, v float64) string {
	colour := ""
	for _, s := range steps {
		if s.Value == nil || v >= *s.Value {
			colour = s.Color
		}
	}
	if strings.HasPrefix(colour, "rgba") {
		return "faint"
	}
	return colour
}

// timeline draws a row per line, coloured by threshold. Rows are sorted by the time of their first value, so that
// phases appear in order.
func (out *picture) timeline(lines []line) {
	slices.SortStableFunc(lines, func(x, y line) int { return cmp.Or(cmp.Compare(x.first(), y.first()), cmp.Compare(x.Name, y.Name)) })
	if len(lines) > maxRows {
		out.Note = fmt.Sprintf("The first %d of %d rows are shown.", maxRows, len(lines))
		lines = lines[:maxRows]
	}
	steps := out.Steps()
	for _, l := range lines {
		s := state{Name: l.Name}
		for from := 0; from < len(l.Values); {
			to := from + 1
			if math.IsNaN(l.Values[from]) {
				from = to
				continue
			}
			c := colourOf(steps, l.Values[from])
			for to < len(l.Values) && !math.IsNaN(l.Values[to]) && colourOf(steps, l.Values[to]) == c {
				to++
			}
			i := slices.IndexFunc(s.Spans, func(x colouredPath) bool { return x.Colour == c })
			if i < 0 {
				i = len(s.Spans)
				s.Spans = append(s.Spans, colouredPath{Colour: c})
			}
			s.Spans[i].Path += fmt.Sprintf("M%d 0H%dV10H%dz", from, to, from)
			from = to
		}
		out.States = append(out.States, s)
	}
}

var placeholder = regexp.MustCompile(`\{\{\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*\}\}`)

// name replaces the placeholders in a legend by the labels of a series.
func name(legend string, labels map[string]string) string {
	s := terminal.Clean(placeholder.ReplaceAllStringFunc(legend, func(m string) string {
		return labels[placeholder.FindStringSubmatch(m)[1]]
	}))
	return terminal.Shorten(cmp.Or(s, "(no label)"), 60)
}

// threshold formats the value at which a panel begins to warn. For a rate, a value of almost zero means any rate above
// zero.
func threshold(unit string, v float64) string {
	if v <= 0.001 && (unit == "reqps" || unit == "ops" || unit == "cps") {
		return "> 0"
	}
	return "≥ " + chart.Grafana(unit, v)
}
