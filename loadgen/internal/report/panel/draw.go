package panel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

const (
	// mostLines is how many lines of one panel a person can tell apart, and how
	// many colours the page has.
	mostLines = 8
	// mostRows of a table or of a state timeline are shown.
	mostRows = 24
)

// picture is a panel as the template takes it.
type picture struct {
	Kind, Title, Tells, Do string
	W, H                   int
	// Empty says in words why there is nothing to see.
	Empty  string
	Lines  []line
	Ticks  []tick
	Levels []level
	Stats  []figure
	Head   []string
	Rows   [][]string
	States []state
	Cells  []cells // of a heatmap, from pale to strong
	Note   string
}

// line is one drawn series. Colour is its place in the page's palette.
type line struct {
	Name, Max, Last string
	Path, Fill      string
	Colour          int

	values []float64
	peak   float64
}

// tick is a height of the drawing with its label.
type tick struct {
	Y     int
	Label string
}

// level is a threshold: where it is drawn, its value and its colour.
type level struct {
	Y            int
	Text, Colour string
}

// figure is a number of a stat.
type figure struct{ Name, Value, Colour string }

// state is a row of a state timeline: stretches of each colour, as path data.
type state struct {
	Name  string
	Spans []colouredPath
}

type colouredPath struct{ Colour, Path string }

// cells are those of a heatmap with one shade.
type cells struct {
	Shade int
	Path  string
}

// artist draws the panels of one run.
type artist struct {
	span   Span
	step   time.Duration
	points int
}

// draw makes the picture of a panel from the answers to its queries.
func (a artist) draw(answers []answer) picture {
	p := answers[0].panel
	tells, do, _ := strings.Cut(p.Description, "\n\nDo: ")
	out := picture{Kind: p.Kind, Title: p.Title, Tells: tells, Do: do, W: p.W, H: p.H}
	var lines []line
	for _, x := range answers {
		if x.err != nil {
			out.Note = "A query failed: " + clean(x.err.Error()) + "."
		}
		for _, s := range x.series {
			if l := (line{Name: name(x.target.Legend, s.Labels), values: a.sample(s.Points)}); l.rank() {
				lines = append(lines, l)
			}
		}
	}
	if len(lines) == 0 {
		out.Empty = nothing(answers)
		return out
	}
	switch p.Kind {
	case "stat":
		out.stats(p, lines)
	case "table":
		out.table(p, answers)
	case "heatmap":
		out.heatmap(answers, a)
	case "state-timeline":
		out.timeline(p, lines)
	default:
		out.chart(p, lines)
	}
	return out
}

// nothing says why no query has an answer.
func nothing(answers []answer) string {
	for _, a := range answers {
		if a.err != nil {
			return "The query failed: " + clean(a.err.Error()) + "."
		}
	}
	if t := answers[0].panel.NoValue; t != "" {
		return t
	}
	return "Nothing was recorded."
}

// sample puts points on the drawing's grid; NaN where there is none.
func (a artist) sample(points []chart.Point) []float64 {
	values := make([]float64, a.points)
	for i := range values {
		values[i] = math.NaN()
	}
	for _, p := range points {
		i := int(math.Round(float64(p.T.Sub(a.span.Start)) / float64(a.step)))
		if i >= 0 && i < a.points && !math.IsInf(p.V, 0) {
			values[i] = p.V
		}
	}
	return values
}

// rank finds the highest value, and tells whether there is any.
func (l *line) rank() bool {
	l.peak = math.Inf(-1)
	for _, v := range l.values {
		if !math.IsNaN(v) {
			l.peak = max(l.peak, v)
		}
	}
	return !math.IsInf(l.peak, -1)
}

func (l line) last() float64 {
	for _, v := range slices.Backward(l.values) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// first is where the line begins.
func (l line) first() int {
	return slices.IndexFunc(l.values, func(v float64) bool { return !math.IsNaN(v) })
}

// byPeak sorts lines, the highest first, and keeps as many as can be told apart.
func (out *picture) byPeak(lines []line, most int) []line {
	slices.SortStableFunc(lines, func(x, y line) int {
		return cmp.Or(cmp.Compare(y.peak, x.peak), cmp.Compare(x.Name, y.Name))
	})
	if len(lines) > most {
		out.Note = strings.TrimSpace(fmt.Sprintf("%s %d of %d lines: those with the highest peaks.", out.Note, most, len(lines)))
		lines = lines[:most]
	}
	return lines
}

func (out *picture) chart(p dashboards.Panel, lines []line) {
	lines = out.byPeak(lines, mostLines)
	var drawn [][]float64
	for _, l := range lines {
		drawn = append(drawn, l.values)
	}
	if p.Stacked {
		drawn = stack(drawn)
	}
	axis := newAxis(p, drawn)
	for i := range lines {
		l := &lines[i]
		l.Colour, l.Max, l.Last = i, text(p.Unit, l.peak), text(p.Unit, l.last())
		l.Path = path(drawn[i], axis.y)
		if p.Stacked {
			under := make([]float64, len(drawn[i]))
			if i > 0 {
				under = drawn[i-1]
			}
			l.Fill = area(under, drawn[i], axis.y)
		}
	}
	out.Lines = lines
	for _, t := range axis.ticks {
		out.Ticks = append(out.Ticks, tick{axis.y(t), text(p.Unit, t)})
	}
	for _, s := range p.Steps {
		if p.Lines && s.Value != nil && *s.Value >= axis.low && *s.Value <= axis.top {
			out.Levels = append(out.Levels, level{axis.y(*s.Value), threshold(p.Unit, *s.Value), s.Color})
		}
	}
}

// stack adds each line to those below it; a gap counts as nothing.
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

func (out *picture) stats(p dashboards.Panel, lines []line) {
	for _, l := range out.byPeak(lines, mostLines) {
		v := l.last()
		if p.Calc == "max" {
			v = l.peak
		}
		out.Stats = append(out.Stats, figure{l.Name, text(p.Unit, v), colourOf(p.Steps, v)})
	}
}

// colourOf is the colour of the highest step that v reaches, as a class.
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

// timeline draws a row for each line, coloured by threshold: what begins first
// comes first, as phases do.
func (out *picture) timeline(p dashboards.Panel, lines []line) {
	slices.SortStableFunc(lines, func(x, y line) int { return cmp.Or(cmp.Compare(x.first(), y.first()), cmp.Compare(x.Name, y.Name)) })
	if len(lines) > mostRows {
		out.Note = fmt.Sprintf("%d of %d rows.", mostRows, len(lines))
		lines = lines[:mostRows]
	}
	for _, l := range lines {
		s := state{Name: l.Name}
		for from := 0; from < len(l.values); {
			to := from + 1
			if math.IsNaN(l.values[from]) {
				from = to
				continue
			}
			c := colourOf(p.Steps, l.values[from])
			for to < len(l.values) && !math.IsNaN(l.values[to]) && colourOf(p.Steps, l.values[to]) == c {
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
