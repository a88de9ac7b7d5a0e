package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// drawnSection and drawn are charts as the page template takes them.
type drawnSection struct {
	Title  string
	Charts []chart.Chart
	Folded []folded // those of them that have nothing to show, once folded
	empty  []chart.Chart
}

// artist draws charts of one run on one time axis.
type artist struct {
	grid   chart.Grid
	src    chart.Source
	result result.Result
}

func (a *artist) sections(ctx context.Context) []drawnSection {
	var out []drawnSection
	for _, s := range chartSections() {
		d := drawnSection{Title: s.Title}
		for _, c := range s.Charts {
			d.Charts = append(d.Charts, a.draw(ctx, c))
		}
		out = append(out, d)
	}
	return out
}

func (a *artist) draw(ctx context.Context, c metricChart) chart.Chart {
	d := chart.Chart{
		ID: chart.ID(chart.Slug(c.Title)), Title: c.Title, Tells: c.Tells, MovesWith: c.MovesWith, Key: c.Key, Unit: c.Unit,
		Log: c.Log, Dips: c.Dips, Level: c.Guide, LevelText: c.GuideText,
	}
	if d.Missing = unmet(c.Needs, a.result.Measurements); d.Missing != "" {
		return d
	}
	lines, err := a.lines(ctx, c)
	recorded := slices.ContainsFunc(lines, func(l chart.Line) bool { return l.PeakAt >= 0 })
	if !recorded {
		d.Missing = a.missing(c, err)
		return d
	}
	lines, zero := chart.SplitZero(lines)
	if zero != "" && len(lines) == 0 {
		d.Missing = "0 throughout: " + zero + "."
		return d
	}
	if zero != "" {
		d.Note = "0 throughout: " + zero + ". "
	}
	if len(lines) > chart.MostSeries {
		d.Note += fmt.Sprintf("%d of %s series: those with the highest peaks.", chart.MostSeries, chart.Count(len(lines)))
		lines = lines[:chart.MostSeries]
	}
	if a.src == nil {
		d.Note += "No metrics were recorded in this run: this is what the client counted."
	}
	if err != nil {
		d.Note = strings.TrimSpace(d.Note + " Some of it is missing: " + chart.Clean(err.Error()))
	}
	d.Draw(lines, a.grid, a.when)
	return d
}

// lines asks for all series of a chart, the highest peak first.
func (a *artist) lines(ctx context.Context, c metricChart) ([]chart.Line, error) {
	var lines []chart.Line
	var firstErr error
	for _, q := range c.Queries {
		if q.PerPhase != "" {
			lines = append(lines, a.perPhase(q))
			continue
		}
		if a.src == nil {
			continue
		}
		found, err := a.src.Range(ctx, windows(a.grid).Replace(q.Expr), a.grid.Start, a.grid.End(), a.grid.Step)
		if err != nil && firstErr == nil {
			firstErr = err
		}
		for _, f := range found {
			lines = append(lines, chart.NewLine(q.label(f.Labels), a.grid.Sample(f.Points, c.Dips)))
		}
	}
	// A line without a single number says nothing, unless it is all there is.
	lines = slices.DeleteFunc(lines, func(l chart.Line) bool { return l.PeakAt < 0 })
	slices.SortStableFunc(lines, chart.ByPeak)
	for i := range lines {
		lines[i].SetFigure(c.Unit, c.Dips)
	}
	return lines, firstErr
}

// label names a series by its telling labels.
func (q query) label(labels map[string]string) string {
	var parts []string
	for _, by := range q.By {
		if v := chart.Clean(labels[by]); v != "" {
			parts = append(parts, v)
		}
	}
	if len(parts) == 0 {
		return cmp.Or(q.Name, "(no label)")
	}
	return chart.Shorten(strings.Join(parts, " "), 60)
}

// windows are the ranges of a query: the grid's step is never shorter than the
// interval of scrapes, so that these hold two samples, or one.
func windows(g chart.Grid) *strings.Replacer {
	ms := func(steps float64) string { return fmt.Sprintf("%dms", int(steps*g.Step.Seconds()*1000)) }
	return strings.NewReplacer("$rate", ms(rateSteps), "$seen", ms(1.5))
}

// rateSteps is how many steps of the grid a rate looks back over.
const rateSteps = 2.5

// perPhase is the offered rate as a level through each phase; the moment between two belongs to
// the one before.
func (a *artist) perPhase(q query) chart.Line {
	values := make([]float64, a.grid.N)
	for i := range values {
		values[i] = math.NaN()
		at := a.grid.Start.Add(time.Duration(i) * a.grid.Step)
		for _, p := range a.result.Measurements.Phases {
			if !at.Before(p.Start) && at.Before(p.End.Add(a.grid.Step)) {
				values[i] = chart.Round6(sums(p).offered)
			}
		}
	}
	return chart.NewLine(q.Name, values)
}

// when names a point of the grid: "2:05, in storm".
func (a *artist) when(i int) string {
	t := a.grid.Start.Add(time.Duration(i) * a.grid.Step)
	s := chart.Clock(a.grid.At(t))
	for _, p := range a.result.Measurements.Phases {
		if !t.Before(p.Start) && !t.After(p.End) {
			return s + ", in " + chart.Clean(p.Name)
		}
	}
	return s
}
