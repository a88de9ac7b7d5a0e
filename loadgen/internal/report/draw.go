package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/machine"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// drawnSection is a section of charts, as the page template shows it.
type drawnSection struct {
	Title  string
	Charts []chart.Chart
	Folded []folded // lines that replace the charts without data; set by fold
	empty  []chart.Chart
}

func (p *page) chartSections(ctx context.Context) []drawnSection {
	var out []drawnSection
	for _, s := range chartSections() {
		d := drawnSection{Title: s.Title}
		for _, c := range s.Charts {
			d.Charts = append(d.Charts, p.draw(ctx, c))
		}
		out = append(out, d)
	}
	return out
}

func (p *page) draw(ctx context.Context, c metricChart) chart.Chart {
	d := chart.New(c.Title, c.Subject)
	if c.Traces {
		d.Links = tracesByPhase(p.result)
	}
	if !p.live { // the measurements of a phase are known only at its end
		d.Missing = unmet(c.Needs, p.result.Measurements)
	}
	if d.Missing != "" {
		return d
	}
	lines, err := p.lines(ctx, c)
	recorded := slices.ContainsFunc(lines, func(l chart.Line) bool { return l.PeakAt >= 0 })
	if !recorded {
		d.Missing = p.missing(c, err)
		return d
	}
	lines, zero := chart.SplitZero(lines)
	if zero != "" && len(lines) == 0 {
		d.Missing = "Always 0 (" + zero + ")."
		return d
	}
	if zero != "" {
		d.Note = "Always 0: " + zero + ". "
	}
	if len(lines) > chart.MaxSeries {
		d.Note += fmt.Sprintf("%d of %s series are shown: those with the highest peaks.", chart.MaxSeries, chart.Count(len(lines)))
		lines = lines[:chart.MaxSeries]
	}
	if p.src == nil {
		d.Note += "No metrics were recorded in this run, so this chart shows the counts of the load generator."
	}
	if err != nil {
		d.Note = strings.TrimSpace(d.Note + " Some data is missing: " + terminal.Clean(err.Error()))
	}
	if c.Unit == "cores" && machine.Ours(p.result.Run) {
		d.Level, d.LevelText = float64(p.result.Run.Host.CPUs), fmt.Sprintf("%d processors of the machine", p.result.Run.Host.CPUs)
	}
	d.Draw(lines, p.Grid, p.when(rateSteps))
	return d
}

// lines runs all queries of a chart, and returns their lines sorted by peak, the highest first.
func (p *page) lines(ctx context.Context, c metricChart) ([]chart.Line, error) {
	lines, err := p.linesOn(ctx, c, p.Grid)
	slices.SortStableFunc(lines, chart.ByPeak)
	for i := range lines {
		lines[i].SetFigure(c.Unit, c.Dips)
	}
	return lines, err
}

// linesOn runs all queries of a chart, and returns their lines on a grid. It leaves out lines without a value.
func (p *page) linesOn(ctx context.Context, c metricChart, g chart.Grid) ([]chart.Line, error) {
	var lines []chart.Line
	var firstErr error
	for _, q := range c.Queries {
		if q.PerPhase != "" {
			lines = append(lines, p.perPhase(q, g))
			continue
		}
		if p.src == nil {
			continue
		}
		found, err := p.src.Range(ctx, windows(g).Replace(q.Expr), g.Start, g.End(), g.Step)
		if err != nil && firstErr == nil {
			firstErr = err
		}
		for _, f := range found {
			lines = append(lines, chart.NewLine(q.label(f.Labels), g.Sample(f.Points, c.Dips)))
		}
	}
	return slices.DeleteFunc(lines, func(l chart.Line) bool { return l.PeakAt < 0 }), firstErr
}

// label returns the name of a series: the values of the labels in q.By.
func (q query) label(labels map[string]string) string {
	var parts []string
	for _, by := range q.By {
		if v := terminal.Clean(labels[by]); v != "" {
			parts = append(parts, v)
		}
	}
	if len(parts) == 0 {
		return cmp.Or(q.Name, unnamed)
	}
	return terminal.Shorten(strings.Join(parts, " "), 60)
}

// unnamed is the name of a series without labels.
const unnamed = "(no label)"

// windows returns a replacer for $rate and $seen in a query. A grid step is never shorter than the scrape interval. So
// the range of a rate has at least two samples, and the range of a gauge at least one.
func windows(g chart.Grid) *strings.Replacer {
	ms := func(steps float64) string { return fmt.Sprintf("%dms", int(steps*g.Step.Seconds()*1000)) }
	return strings.NewReplacer("$rate", ms(rateSteps), "$seen", ms(1.5))
}

// rateSteps is the length of $rate, the range of rates, in steps of the grid.
const rateSteps = 2.5

// perPhase returns a line that is constant in each phase: a measurement of the phase. A point between two phases gets
// the value of the earlier one.
func (p *page) perPhase(q query, g chart.Grid) chart.Line {
	values := make([]float64, g.N)
	for i := range values {
		values[i] = math.NaN()
		at := g.Start.Add(time.Duration(i) * g.Step)
		for _, phase := range p.result.Measurements.Phases {
			if p.live && len(phase.Requests)+len(phase.Changes) == 0 {
				continue // the phase is in progress
			}
			if !at.Before(phase.Start) && at.Before(phase.End.Add(g.Step)) {
				values[i] = chart.Round6(p.otherPrograms(phase))
			}
		}
	}
	return chart.NewLine(q.Name, values)
}

// otherPrograms returns the mean number of processors that other programs used in a phase, or NaN if it is unknown. It is
// the only measurement that a query can name in PerPhase.
func (p *page) otherPrograms(phase result.Phase) float64 {
	if f, ok := machine.Of(phase.Machine, phase.Seconds(), p.result.Run.Host.CPUs, machine.Ours(p.result.Run)); ok && f.Others != nil {
		return *f.Others
	}
	return math.NaN()
}

// when returns a function that describes point i of the grid by its time and the phases that its window overlaps, such
// as "2:05, in storm" or "2:05, before or in storm". window is the length of the window in steps of the grid.
func (p *page) when(window float64) func(i int) string {
	return func(i int) string {
		end := p.Grid.Start.Add(time.Duration(i) * p.Grid.Step)
		begin := end.Add(-time.Duration(window * float64(p.Grid.Step)))
		text, joint := chart.Clock(p.Grid.At(end)), ", in "
		for n, phase := range p.result.Measurements.Phases {
			if end.Before(phase.Start) || begin.After(phase.End) {
				continue
			}
			if n == 0 && begin.Before(phase.Start) {
				joint = ", before or in "
			}
			text += joint + terminal.Clean(phase.Name)
			joint = " or "
		}
		return text
	}
}

// folded names the charts of a section that have no data for the same reason, Why.
type folded struct{ Titles, Why string }

// fold replaces the charts without data by one line per reason, because each empty chart would take the space of a full
// one.
func (d *drawnSection) fold() {
	for _, c := range d.Charts {
		if c.Missing == "" {
			continue
		}
		d.empty = append(d.empty, c)
		i := slices.IndexFunc(d.Folded, func(f folded) bool { return f.Why == c.Missing })
		if i < 0 {
			d.Folded = append(d.Folded, folded{c.Title, c.Missing})
		} else {
			d.Folded[i].Titles += "; " + c.Title
		}
	}
	d.Charts = slices.DeleteFunc(d.Charts, func(c chart.Chart) bool { return c.Missing != "" })
}

// metricName matches the metric that an expression selects.
var metricName = regexp.MustCompile(`([a-z_]+)(?:\{[^}]*\})?\[`)

// missing returns the reason why a chart has no data, as a sentence.
func (p *page) missing(c metricChart, err error) string {
	targets := p.result.Run.Cluster.Targets
	scraped := slices.ContainsFunc(targets, func(t string) bool { return strings.Contains(t, c.Job) })
	switch {
	case p.src == nil:
		return "No metrics were recorded in this run."
	case err != nil:
		return "The query failed: " + terminal.Clean(err.Error()) + "."
	case c.Job != "" && c.Job != jobGenerator && len(targets) > 0 && !scraped:
		return c.Job + " was not scraped in this run."
	case c.Quiet != "":
		return c.Quiet
	}
	var names []string
	for _, q := range c.Queries {
		for _, found := range metricName.FindAllStringSubmatch(q.Expr, -1) {
			if n := strings.TrimSuffix(found[1], "_bucket"); !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return "No samples of " + strings.Join(names, ", ") + " in this run."
}

// errorRateSection draws the rates of errors and of relists (repeated lists of a watch). Each point shows the highest
// count in a second near its time. errorRateSection returns false if there are no samples.
func (p *page) errorRateSection(slots []samples.Slot) (drawnSection, bool) {
	errors := p.perSecond(slots, func(s samples.Slot, add func(string, int64)) {
		for load, r := range s.Requests {
			add(load, r.Failures()-r.Failed[samples.Canceled]+r.Unsent)
		}
	})
	relists := p.perSecond(slots, func(s samples.Slot, add func(string, int64)) {
		for load, r := range s.Streams {
			add(load+", relists", r.Relists)
			add(load+", broken", r.Breaks)
		}
	})
	d := drawnSection{Title: "Effects on the loads"}
	add := func(lines []chart.Line, none string, of chart.Subject) {
		of.Unit = scenario.PerSec
		c := chart.New(of.Title, of)
		if len(lines) == 0 {
			c.Missing = none
		} else {
			c.Draw(lines, p.Grid, p.when(0))
		}
		d.Charts = append(d.Charts, c)
	}
	add(errors, "No request failed.", chart.Subject{
		Title: "Requests that failed", MovesWith: "any fault that affects requests",
		Tells: "Failed and unsent requests of each load. Each point is the highest count of any second that it covers.",
	})
	add(relists, "No watch broke, and no watch had to list again.", chart.Subject{
		Title: "Relists and broken watches", MovesWith: "API server killed or restarted, partition",
		Tells: "Watches that broke, and watches that had to list again (relists). Each point is the highest count of any second that it covers.",
	})
	return d, len(slots) > 0
}

// drawn reports whether any chart of the section has data.
func (d drawnSection) drawn() bool {
	return slices.ContainsFunc(d.Charts, func(c chart.Chart) bool { return c.Missing == "" })
}

// mostSeconds is the maximum number of seconds of a run for which perSecond counts: a week.
const mostSeconds = 7 * 24 * 3600

// perSecond adds up counts by second and name, and returns a line for each name with a count above zero. To get the
// counts of a slot, it calls the function `of`, which reports each count with its name. If there are too many lines, it
// returns the lines with the highest peaks.
func (p *page) perSecond(slots []samples.Slot, of func(samples.Slot, func(name string, n int64))) []chart.Line {
	seconds := min(int(p.Grid.Seconds()), mostSeconds) + 1
	sums := map[string][]int64{}
	for _, s := range slots {
		at := int(p.Grid.At(s.From()))
		if at < 0 || at >= seconds {
			continue
		}
		of(s, func(name string, n int64) {
			if n <= 0 {
				return
			}
			if sums[name] == nil {
				sums[name] = make([]int64, seconds)
			}
			sums[name][at] += n
		})
	}
	var lines []chart.Line
	for _, name := range sortedKeys(sums) {
		points := make([]chart.Point, seconds)
		for i, n := range sums[name] {
			points[i] = chart.Point{T: p.Grid.Start.Add(time.Duration(i) * time.Second), V: float64(n)}
		}
		l := chart.NewLine(terminal.Clean(name), p.Grid.Sample(points, false))
		l.SetFigure(scenario.PerSec, false)
		lines = append(lines, l)
	}
	slices.SortStableFunc(lines, chart.ByPeak)
	return lines[:min(len(lines), chart.MaxSeries)]
}

// signalsTitle is the heading of the scenario's signals.
const signalsTitle = "Signals"

// signalSection draws the samples of the scenario's signals before, during and after the faults, with the mean before
// the faults as reference. It returns false if the scenario has no signals.
func (p *page) signalSection() (drawnSection, bool) {
	d := drawnSection{Title: signalsTitle}
	for _, s := range p.result.Signals {
		c := chart.New("signal "+s.Name, chart.Subject{
			Title: terminal.Clean(s.Name), Tells: "A metric of the scenario: " + terminal.Clean(s.Expr),
			Unit: scenario.Unit(s.Unit), Dips: s.Moved != nil && s.Extreme < s.Steady.Mean, Level: s.Steady.Mean, LevelText: "mean before the fault",
		})
		points := pointsOf(s)
		if len(points) > 0 {
			l := chart.NewLine(terminal.Clean(s.Name), p.Grid.Sample(points, c.Dips))
			l.SetFigure(c.Unit, c.Dips)
			c.Draw([]chart.Line{l}, p.Grid, p.when(0))
		}
		switch {
		case len(points) == 0:
			c.Missing = cmp.Or(terminal.Clean(s.Detail), "This metric was not sampled.")
		case s.Moved != nil:
			c.Note = "Change during the fault: " + noises(s) + ". Returned after the fault: " + cmp.Or(returned(s), chart.None) + "."
		}
		d.Charts = append(d.Charts, c)
	}
	return d, len(d.Charts) > 0
}

// pointsOf returns the samples of a signal in order of time.
func pointsOf(s result.Signal) []chart.Point {
	windows := []result.SignalWindow{s.Steady, s.Under}
	if s.After != nil {
		windows = append(windows, *s.After)
	}
	var all []chart.Point
	for _, w := range windows {
		for _, p := range w.Points {
			all = append(all, chart.Point{T: p.Time, V: p.Value})
		}
	}
	slices.SortStableFunc(all, func(x, y chart.Point) int { return x.T.Compare(y.T) })
	return all
}
