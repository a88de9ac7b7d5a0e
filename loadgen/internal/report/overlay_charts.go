package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// overlay is the common time axis of several runs, with their charts. The times of the axis begin at the Unix epoch. On
// the axis, a phase begins at the same time in all runs, and takes as long as in the run in which it took longest.
// page.result holds only the phases of the axis.
type overlay struct {
	page
	runs []Overlaid
}

// newOverlay draws the charts of runs.
func newOverlay(ctx context.Context, runs []Overlaid) *overlay {
	o := &overlay{runs: runs}
	o.result.Measurements.Phases = alignedPhases(runs)
	if len(o.result.Measurements.Phases) == 0 {
		o.Notes = []string{"No run recorded a phase, so there are no charts."}
		return o
	}
	o.events = o.alignedEvents()
	for _, r := range runs {
		o.interval = max(o.interval, cmp.Or(r.Interval, rundir.DefaultInterval))
	}
	o.layTimeline(o.result, o.events, o.interval)
	for i := range o.Bands {
		o.Bands[i].Took = o.tookIn(o.result.Measurements.Phases[i].Name)
	}
	o.LookBack = chart.Format("seconds", rateSteps*o.Grid.Step.Seconds())
	o.Notes = o.notes()
	parts := o.parts()
	for _, s := range chartSections() {
		d := drawnSection{Title: s.Title}
		for _, c := range s.Charts {
			d.Charts = append(d.Charts, o.charts(ctx, c, parts)...)
		}
		d.fold()
		o.Sections = append(o.Sections, d)
	}
	return o
}

// epoch is the start of the common axis.
var epoch = time.Unix(0, 0).UTC()

// alignedPhases returns the phases of the axis, in the order of the first run. A phase that earlier runs lack comes
// after the phase that precedes it in its own run.
func alignedPhases(runs []Overlaid) []result.Phase {
	var axis []result.Phase
	for _, run := range runs {
		next := 0
		for _, p := range run.Result.Measurements.Phases {
			i := phaseIndex(axis, p.Name)
			if i < 0 {
				i = next
				axis = slices.Insert(axis, i, result.Phase{Name: p.Name, Start: epoch, End: epoch})
			}
			if end := epoch.Add(p.End.Sub(p.Start)); end.After(axis[i].End) {
				axis[i].End = end
			}
			next = i + 1
		}
	}
	start := epoch
	for i := range axis {
		end := start.Add(axis[i].End.Sub(axis[i].Start))
		axis[i].Start, axis[i].End = start, end
		start = end
	}
	return axis
}

func phaseIndex(phases []result.Phase, name string) int {
	return slices.IndexFunc(phases, func(p result.Phase) bool { return p.Name == name })
}

// shift returns the duration to add to a time in the phase p of a run, to get the time on the axis.
func (o *overlay) shift(p result.Phase) time.Duration {
	axis := o.result.Measurements.Phases
	return axis[phaseIndex(axis, p.Name)].Start.Sub(p.Start)
}

// alignedEvents returns the events that the axis marks. If several runs have the same event at about the same time of a
// phase, it returns the event once. If some runs lack an event, the detail of the event names the runs that have it.
func (o *overlay) alignedEvents() []result.Event {
	const near = 5 * time.Second
	var all []result.Event
	var in [][]string
	for _, run := range o.runs {
		for _, p := range run.Result.Measurements.Phases {
			for _, e := range run.Timeline {
				if !marked(e) || e.Time.Before(p.Start) || !e.Time.Before(p.End) {
					continue
				}
				e.Time = e.Time.Add(o.shift(p))
				same := func(known result.Event) bool {
					return known.Kind == e.Kind && known.Name == e.Name && slices.Equal(known.On, e.On) && known.Time.Sub(e.Time).Abs() < near
				}
				i := slices.IndexFunc(all, same)
				if i < 0 {
					i = len(all)
					all, in = append(all, e), append(in, nil)
				}
				if !slices.Contains(in[i], run.Name) {
					in[i] = append(in[i], run.Name)
				}
			}
		}
	}
	for i, names := range in {
		if len(names) < len(o.runs) {
			all[i].Detail = strings.TrimPrefix(eventDetail(all[i])+"; only in "+listed(names), "; ")
		}
	}
	slices.SortStableFunc(all, func(x, y result.Event) int { return x.Time.Compare(y.Time) })
	return all
}

// tookIn returns how long a phase took in each run: "12 s in a, 14 s in b".
func (o *overlay) tookIn(phase string) string {
	var all []string
	for _, run := range o.runs {
		phases := run.Result.Measurements.Phases
		if i := phaseIndex(phases, phase); i >= 0 {
			all = append(all, seconds(phases[i].Seconds())+phaseNote(phases[i])+" in "+run.Name)
		}
	}
	return strings.Join(all, ", ")
}

// notes returns sentences that explain the axis, and say what the runs lack.
func (o *overlay) notes() []string {
	text := "All runs share one time axis. Each phase begins at the same place in all runs, and has as much room as in the run in which it took longest."
	var silent, empty, coarse []string
	for _, run := range o.runs {
		switch {
		case len(run.Result.Measurements.Phases) == 0:
			empty = append(empty, run.Name)
		case run.Source == nil:
			silent = append(silent, run.Name)
		case run.Downsampled:
			coarse = append(coarse, fmt.Sprintf("%s (one sample per %s)", run.Name, model.Duration(run.Interval)))
		}
	}
	if len(empty) > 0 {
		text += " No phase was recorded in " + listed(empty) + "."
	}
	if len(silent) > 0 {
		text += " No metrics were recorded in " + listed(silent) + "."
	}
	if len(coarse) > 0 {
		text += " The metrics were downsampled in " + listed(coarse) + ", so all charts are as coarse."
	}
	only := map[string][]string{} // phases, by the runs that have them
	for _, p := range o.result.Measurements.Phases {
		var in []string
		for _, run := range o.runs {
			if phaseIndex(run.Result.Measurements.Phases, p.Name) >= 0 {
				in = append(in, run.Name)
			}
		}
		if len(in)+len(empty) < len(o.runs) {
			only[listed(in)] = append(only[listed(in)], terminal.Clean(p.Name))
		}
	}
	for _, in := range sortedKeys(only) {
		text += " Phases only in " + in + ": " + listed(only[in]) + "."
	}
	return []string{text}
}

// EventsNote returns a note if the axis does not mark all events, otherwise "".
func (o *overlay) EventsNote() string {
	if len(o.events) > len(o.Events) {
		return fmt.Sprintf("This list has the first %d events. The reports of the runs list all events.", len(o.Events))
	}
	return ""
}

// part is a phase of a run. The points of its grid are times of the run. They correspond to the points of the common
// axis that begin with the index `first`.
type part struct {
	chart.Grid
	first int
}

// parts returns the parts of each run.
func (o *overlay) parts() [][]part {
	all := make([][]part, len(o.runs))
	step := o.Grid.Step
	for i, run := range o.runs {
		for _, p := range run.Result.Measurements.Phases {
			shift := o.shift(p)
			from, to := o.Grid.At(p.Start.Add(shift)), o.Grid.At(p.End.Add(shift))
			first, last := int(math.Ceil(from/step.Seconds())), min(int(to/step.Seconds()), o.Grid.N-1)
			if first > last {
				continue // the phase has no point
			}
			start := o.Grid.Start.Add(time.Duration(first)*step - shift)
			all[i] = append(all[i], part{chart.Grid{Start: start, Step: step, N: last - first + 1}, first})
		}
	}
	return all
}

// overlaidSeries is a series of a chart in all runs.
type overlaidSeries struct {
	name   string
	values [][]float64 // for each run, a value for each point of the axis; nil if the run lacks the series
}

// maxOverlaidSeries is the maximum number of series that are drawn for one chart in charts.yaml, because each series
// becomes a separate chart.
const maxOverlaidSeries = 4

// charts draws a chart for each series of the declared chart c, with a line for each run. If there is nothing to draw,
// it returns one chart that says why.
func (o *overlay) charts(ctx context.Context, c metricChart, parts [][]part) []chart.Chart {
	all, errs := o.series(ctx, c, parts)
	lines := make([]chart.Line, len(all))
	for i, s := range all {
		lines[i] = chart.NewLine(s.name, slices.Concat(s.values...))
	}
	slices.SortStableFunc(lines, chart.ByPeak)
	lines, zero := chart.SplitZero(lines)
	var notes []string
	if zero != "" {
		notes = append(notes, "Always 0: "+zero+".")
	}
	if len(lines) == 0 {
		none := chart.New(c.Title, c.Subject)
		none.Missing = cmp.Or(strings.Join(append(notes, errs...), " "), c.Quiet, "No run has data.")
		return []chart.Chart{none}
	}
	if n := len(lines); n > maxOverlaidSeries {
		lines = lines[:maxOverlaidSeries]
		notes = append(notes, fmt.Sprintf("The %d series with the highest peaks are shown; %s more are left out.", maxOverlaidSeries, chart.Count(n-maxOverlaidSeries)))
	}
	var out []chart.Chart
	for i, l := range lines {
		at := slices.IndexFunc(all, func(s overlaidSeries) bool { return s.name == l.Name })
		d := o.chart(fmt.Sprintf("%s %d", c.Title, i+1), c, all[at])
		if i == 0 {
			d.Note = strings.Join(slices.Concat(notes, errs, []string{d.Note}), " ")
		} else {
			d.Tells, d.MovesWith = "", "" // the first chart has these texts
		}
		out = append(out, d)
	}
	return out
}

// chart draws one series of all runs. A run has the same colour in all charts.
func (o *overlay) chart(id string, c metricChart, s overlaidSeries) chart.Chart {
	d := chart.New(id, c.Subject)
	if s.name != unnamed {
		d.Title += ": " + s.name
	}
	var lines []chart.Line
	var without []string
	for i, values := range s.values {
		l := chart.NewLine(terminal.Shorten(o.runs[i].Name, 60), values)
		if l.PeakAt < 0 {
			if o.runs[i].Source != nil && len(o.runs[i].Result.Measurements.Phases) > 0 { // the notes name runs without metrics
				without = append(without, o.runs[i].Name)
			}
			continue
		}
		l.Colour = i
		l.SetFigure(c.Unit, c.Dips)
		lines = append(lines, l)
	}
	if len(without) > 0 {
		d.Note = "No data in " + listed(without) + "."
	}
	d.DrawColoured(lines, o.Grid, o.when(rateSteps))
	return d
}

// series returns the series of the declared chart c in all runs, and a sentence for each run whose queries failed.
func (o *overlay) series(ctx context.Context, c metricChart, parts [][]part) (all []overlaidSeries, errs []string) {
	for i, run := range o.runs {
		if unmet(c.Needs, run.Result.Measurements) != "" {
			continue
		}
		var failed error
		recorded := page{result: run.Result, src: run.Source}
		for _, part := range parts[i] {
			lines, err := recorded.linesOn(ctx, c, part.Grid)
			failed = cmp.Or(failed, err)
			for _, l := range lines {
				at := slices.IndexFunc(all, func(s overlaidSeries) bool { return s.name == l.Name })
				if at < 0 {
					at = len(all)
					all = append(all, overlaidSeries{l.Name, make([][]float64, len(o.runs))})
				}
				into := &all[at].values[i]
				if *into == nil {
					*into = slices.Repeat([]float64{math.NaN()}, o.Grid.N)
				}
				for k, v := range l.Values {
					if !math.IsNaN(v) {
						(*into)[part.first+k] = v
					}
				}
			}
		}
		if failed != nil {
			errs = append(errs, "Some data of "+run.Name+" is missing: "+terminal.Clean(failed.Error())+".")
		}
	}
	return all, errs
}
