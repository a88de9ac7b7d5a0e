package report

import (
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// errorRateSection draws the error rate and the relists: each point is
// the worst second of the stretch around it. Without samples there is none.
func (a *artist) errorRateSection(slots []samples.Slot) (drawnSection, bool) {
	errors := a.perSecond(slots, func(s samples.Slot, add func(string, int64)) {
		for load, r := range s.Requests {
			add(load, r.Failures()-r.Failed["canceled"]+r.Unsent)
		}
	})
	relists := a.perSecond(slots, func(s samples.Slot, add func(string, int64)) {
		for load, r := range s.Streams {
			add(load+", relists", r.Relists)
			add(load+", breaks", r.Breaks)
		}
	})
	d := drawnSection{Title: "What the loads felt"}
	for _, c := range []struct {
		title, tells, moves string
		lines               []chart.Line
		none                string
	}{
		{"Requests that failed", "By load, unsent ones included: the error window of a fault, as it was. Each point is the worst second around it.", "any fault that is felt", errors, "No request failed."},
		{"Relists and broken watches", "What every watcher asks for at once when an API server comes back. Each point is the worst second around it.", "API server killed or restarted, partition", relists, "No watch broke, and none had to list again."},
	} {
		c2 := chart.Chart{ID: chart.ID(chart.Slug(c.title)), Title: c.title, Tells: c.tells, MovesWith: c.moves, Unit: scenario.PerSec}
		if len(c.lines) == 0 {
			c2.Missing = c.none
		} else {
			c2.Draw(c.lines, a.grid, a.when)
		}
		d.Charts = append(d.Charts, c2)
	}
	return d, len(slots) > 0
}

// drawn reports whether the section has a line to show.
func (d drawnSection) drawn() bool {
	return slices.ContainsFunc(d.Charts, func(c chart.Chart) bool { return c.Missing == "" })
}

// mostSeconds of a run that are counted apart: a week.
const mostSeconds = 7 * 24 * 3600

// perSecond makes a line of each name that is ever over zero.
func (a *artist) perSecond(slots []samples.Slot, of func(samples.Slot, func(name string, n int64))) []chart.Line {
	seconds := min(int(a.grid.Seconds()), mostSeconds) + 1
	sums := map[string][]int64{}
	for _, s := range slots {
		at := int(a.grid.At(s.From()))
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
			points[i] = chart.Point{T: a.grid.Start.Add(time.Duration(i) * time.Second), V: float64(n)}
		}
		l := chart.NewLine(chart.Clean(name), a.grid.Sample(points, false))
		l.SetFigure(scenario.PerSec, false)
		lines = append(lines, l)
	}
	slices.SortStableFunc(lines, chart.ByPeak)
	return lines[:min(len(lines), chart.MostSeries)]
}
