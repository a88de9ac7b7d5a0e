package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// mostSeries is how many lines of one chart a person can tell apart.
const mostSeries = 8

// drawnSection and drawn are charts as the page template takes them.
type drawnSection struct {
	Title  string
	Charts []drawn
	Folded []folded // those of them that have nothing to show, once folded
	empty  []drawn
}

type drawn struct {
	ID               string
	Title, Tells     string
	MovesWith        string
	Key              string // the key metric it shows
	Unit             scenario.Unit
	Log              bool
	Series           []line
	Ticks            []mark // of the vertical axis
	Guide            *mark
	Peak, Where      string
	Note             string
	Long             bool // the names need a line each
	Missing, Summary string

	scale scale
	guide float64 // of Guide
}

// line is one drawn series. Colour is its place in the palette; the values are
// for the script, the peak is for everybody.
type line struct {
	Name       string
	Path, Dots string // of an SVG path
	Colour     int
	Figure     string // the peak, or where it ended
	Values     []float64
	peak       float64
	peakAt     int
}

// mark is a position in percent with its label.
type mark struct{ At, Label string }

// artist draws charts of one run on one time axis.
type artist struct {
	grid   grid
	src    Source
	result result.Result
}

func (a *artist) sections(ctx context.Context) []drawnSection {
	var out []drawnSection
	for _, s := range sections() {
		d := drawnSection{Title: s.Title}
		for _, c := range s.Charts {
			chart := a.draw(ctx, c)
			chart.ID = chartID(slug(c.Title))
			d.Charts = append(d.Charts, chart)
		}
		out = append(out, d)
	}
	return out
}

func (a *artist) draw(ctx context.Context, c chart) drawn {
	d := drawn{Title: c.Title, Tells: c.Tells, MovesWith: c.MovesWith, Key: c.Key, Unit: c.Unit, Log: c.Log}
	if c.Needs != nil {
		if d.Missing = c.Needs(a.result.Measurements); d.Missing != "" {
			return d
		}
	}
	lines, err := a.lines(ctx, c)
	recorded := slices.ContainsFunc(lines, func(l line) bool { return l.peakAt >= 0 })
	if !recorded {
		d.Missing = a.missing(c, err)
		return d
	}
	lines, zero := splitZero(lines)
	if zero != "" && len(lines) == 0 {
		d.Missing = "0 throughout: " + zero + "."
		return d
	}
	if zero != "" {
		d.Note = "0 throughout: " + zero + ". "
	}
	if len(lines) > mostSeries {
		d.Note += fmt.Sprintf("%d of %s series: those with the highest peaks.", mostSeries, count(len(lines)))
		lines = lines[:mostSeries]
	}
	if a.src == nil {
		d.Note += "No metrics were recorded in this run: this is what the client counted."
	}
	if err != nil {
		d.Note = strings.TrimSpace(d.Note + " Some of it is missing: " + clean(err.Error()))
	}
	return a.put(d, c, lines)
}

// plot draws lines that are there already.
func (a *artist) plot(c chart, lines []line) drawn {
	d := drawn{Title: c.Title, Tells: c.Tells, MovesWith: c.MovesWith, Unit: c.Unit, Log: c.Log}
	if len(lines) == 0 {
		return d
	}
	return a.put(d, c, lines)
}

// put puts the lines into a chart, with its scale and its words.
func (a *artist) put(d drawn, c chart, lines []line) drawn {
	colour(lines)
	s := a.scale(c, lines)
	for i := range lines {
		lines[i].Path, lines[i].Dots = path(lines[i].Values, s)
	}
	d.Series, d.scale = lines, s
	for _, t := range s.ticks {
		d.Ticks = append(d.Ticks, mark{percentAt(s.y(t) / plotHeight), tickLabel(c.Unit, t)})
	}
	if c.Guide > 0 && c.Guide >= s.low && c.Guide <= s.high {
		d.guide = c.Guide
		d.Guide = &mark{percentAt(s.y(c.Guide) / plotHeight), c.GuideText}
	}
	top := lines[0]
	d.Peak, d.Where = "Figures: peaks", ""
	switch {
	case c.Dips:
		// What counts is where it ended: a peak of Ready nodes is no news.
		d.Peak = "Figures: at the end"
	case top.peak > 0:
		d.Peak = "Peak " + format(c.Unit, top.peak)
		d.Where = "at " + a.when(top.peakAt)
		if len(lines) > 1 {
			d.Where = "(" + top.Name + ") " + d.Where
		}
	}
	for _, l := range lines {
		d.Long = d.Long || len(lines) == 1 || textWidth(l.Name)+textWidth(l.Figure) > 14
	}
	d.Summary = fmt.Sprintf("%s. %d series over %s. %s.", c.Title, len(lines), clock(a.grid.seconds()), strings.TrimSpace(d.Peak+" "+d.Where))
	return d
}

// splitZero takes out lines that never left zero and names them: a line along
// the axis hides the others, and says no more than these words.
func splitZero(lines []line) (rest []line, names string) {
	var zero []string
	for _, l := range lines {
		if l.peak == 0 && !slices.ContainsFunc(l.Values, func(v float64) bool { return v < 0 }) {
			zero = append(zero, l.Name)
		} else {
			rest = append(rest, l)
		}
	}
	slices.Sort(zero)
	if n := len(zero); n > mostSeries {
		zero = append(zero[:mostSeries], fmt.Sprintf("%s more", count(n-mostSeries)))
	}
	return rest, strings.Join(zero, ", ")
}

// lines asks for all series of a chart, the highest peak first.
func (a *artist) lines(ctx context.Context, c chart) ([]line, error) {
	var lines []line
	var firstErr error
	for _, q := range c.Queries {
		if q.PerPhase != nil {
			lines = append(lines, a.perPhase(q))
			continue
		}
		if a.src == nil {
			continue
		}
		found, err := a.src.Range(ctx, windows(a.grid).Replace(q.Expr), a.grid.start, a.grid.end(), a.grid.step)
		if err != nil && firstErr == nil {
			firstErr = err
		}
		for _, f := range found {
			lines = append(lines, newLine(q.label(f.Labels), a.grid.sample(f.Points, c.Dips)))
		}
	}
	// A line without a single number says nothing, unless it is all there is.
	lines = slices.DeleteFunc(lines, func(l line) bool { return l.peakAt < 0 })
	slices.SortStableFunc(lines, func(x, y line) int {
		return cmp.Or(cmp.Compare(y.peak, x.peak), cmp.Compare(x.Name, y.Name))
	})
	for i := range lines {
		lines[i].Figure = format(c.Unit, lines[i].peak)
		if c.Dips {
			lines[i].Figure = format(c.Unit, lastOf(lines[i].Values))
		}
	}
	return lines, firstErr
}

func newLine(name string, values []float64) line {
	l := line{Name: name, Values: values, peakAt: peak(values)}
	if l.peakAt >= 0 {
		l.peak = values[l.peakAt]
	}
	return l
}

// lastOf is the last value that is one.
func lastOf(values []float64) float64 {
	for _, v := range slices.Backward(values) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// label names a series by its telling labels.
func (q query) label(labels map[string]string) string {
	var parts []string
	for _, by := range q.By {
		if v := clean(labels[by]); v != "" {
			parts = append(parts, v)
		}
	}
	if len(parts) == 0 {
		return cmp.Or(q.Name, "(no label)")
	}
	return shorten(strings.Join(parts, " "), 60)
}

// windows are the ranges of a query: the grid's step is never shorter than the
// interval of scrapes, so that these hold two samples, or one.
func windows(g grid) *strings.Replacer {
	ms := func(steps float64) string { return fmt.Sprintf("%dms", int(steps*g.step.Seconds()*1000)) }
	return strings.NewReplacer("$rate", ms(rateSteps), "$seen", ms(1.5))
}

// rateSteps is how many steps of the grid a rate looks back over.
const rateSteps = 2.5

// perPhase is a level through each phase; the moment between two belongs to
// the one before.
func (a *artist) perPhase(q query) line {
	values := make([]float64, a.grid.n)
	for i := range values {
		values[i] = math.NaN()
		at := a.grid.start.Add(time.Duration(i) * a.grid.step)
		for _, p := range a.result.Measurements.Phases {
			if !at.Before(p.Start) && at.Before(p.End.Add(a.grid.step)) {
				values[i] = round6(q.PerPhase(p))
			}
		}
	}
	return newLine(q.Name, values)
}

func (a *artist) scale(c chart, lines []line) scale {
	low, high := math.Inf(1), 0.0
	for _, l := range lines {
		for _, v := range l.Values {
			if !math.IsNaN(v) && (v > 0 || !c.Log) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	// A guide is worth the room when the values come near it.
	reach := map[bool]float64{true: 20, false: 2.5}[c.Log]
	if c.Guide > high && c.Guide <= high*reach {
		high = c.Guide * 1.05
	}
	if c.Log && c.Guide > 0 && c.Guide < low && c.Guide*reach >= low {
		low = c.Guide
	}
	return newScale(low, high, c.Log, c.Unit)
}
