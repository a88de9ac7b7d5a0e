package report

import (
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// pulseSection is the error rate and the relists, from the pulse: each point is
// the worst second of the stretch around it. Without a pulse there is none.
func (a *artist) pulseSection(slots []samples.Slot) (drawnSection, bool) {
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
		chart
		lines []line
		none  string
	}{
		{chart{Title: "Requests that failed", Tells: "By load, unsent ones included: the error window of a fault, as it was. Each point is the worst second around it.", Unit: scenario.PerSec, MovesWith: "any fault that is felt"}, errors, "No request failed."},
		{chart{Title: "Relists and broken watches", Tells: "What every watcher asks for at once when an API server comes back. Each point is the worst second around it.", Unit: scenario.PerSec, MovesWith: "API server killed or restarted, partition"}, relists, "No watch broke, and none had to list again."},
	} {
		chart := a.plot(c.chart, c.lines)
		if len(c.lines) == 0 {
			chart.Missing = c.none
		}
		chart.ID = chartID(slug(c.Title))
		d.Charts = append(d.Charts, chart)
	}
	return d, len(slots) > 0
}

// drawn tells whether the section has a line to show.
func (d drawnSection) drawn() bool {
	return slices.ContainsFunc(d.Charts, func(c drawn) bool { return c.Missing == "" })
}

// mostSeconds of a run that are counted apart: a week.
const mostSeconds = 7 * 24 * 3600

// perSecond makes a line of each name that is ever over zero.
func (a *artist) perSecond(slots []samples.Slot, of func(samples.Slot, func(name string, n int64))) []line {
	seconds := min(int(a.grid.seconds()), mostSeconds) + 1
	sums := map[string][]int64{}
	for _, s := range slots {
		at := int(a.grid.at(s.From()))
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
	var lines []line
	for _, name := range sortedKeys(sums) {
		points := make([]Point, seconds)
		for i, n := range sums[name] {
			points[i] = Point{T: a.grid.start.Add(time.Duration(i) * time.Second), V: float64(n)}
		}
		l := newLine(clean(name), a.grid.sample(points, false))
		l.Figure = format(scenario.PerSec, l.peak)
		lines = append(lines, l)
	}
	slices.SortStableFunc(lines, func(x, y line) int {
		if x.peak != y.peak {
			return int(y.peak - x.peak)
		}
		return strings.Compare(x.Name, y.Name)
	})
	return lines[:min(len(lines), mostSeries)]
}
