package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// defaultInterval is that of scrapes where the scenario can't be read.
const defaultInterval = 5 * time.Second

// band is a phase on the time axis. Left and Width are in percent, X and W in
// the coordinates of a plot.
type band struct {
	Name, Took, Left, Width, X, W string
	Odd, Fault, Narrow            bool

	from, to float64 // shares of the axis
}

// event is a vertical mark with its number; the list below the ruler says
// what it was.
type event struct {
	N                         int
	Left, X                   string
	Lane                      int
	Kind, Name, Detail, Clock string
	Fault                     bool

	at  float64 // share of the axis
	bar bool    // a track has it too
}

// layTimeline makes the axis that all charts share, with phases and marks.
func (p *page) layTimeline(r result.Result, events []result.Event, interval time.Duration) {
	start, end := r.Run.Started, r.Run.Ended
	phases := r.Measurements.Phases
	switch {
	case len(phases) > 0:
		start, end = phases[0].Start, phases[len(phases)-1].End
	case start.IsZero() && len(events) > 0:
		start, end = events[0].Time, events[len(events)-1].Time
	}
	for _, e := range events {
		// Registration of nodes belongs to the picture, and what happened
		// after the last phase too.
		if e.Time.Before(start) && e.Time.After(r.Run.Started) {
			start = e.Time
		}
		if e.Time.After(end) && e.Time.Before(r.Run.Ended) {
			end = e.Time
		}
	}
	p.grid = newGrid(start, end, interval)
	p.phases = []scriptPhase{}
	faults := timeline.Of(events).Faults
	for i, ph := range phases {
		p.Bands = append(p.Bands, p.newBand(ph, i, faults))
		p.phases = append(p.phases, scriptPhase{clean(ph.Name), round3(p.grid.at(ph.Start)), round3(p.grid.at(ph.End))})
	}
	p.layEvents(events)
	for _, t := range timeTicks(p.grid.seconds(), 12) {
		if t > .97*p.grid.seconds() {
			break // its label would be cut off
		}
		p.TimeTicks = append(p.TimeTicks, mark{percentAt(t / p.grid.seconds()), clock(t)})
	}
	p.Log = p.eventLog(events)
}

func round3(v float64) float64 { return float64(int64(v*1000+0.5)) / 1000 }

func (p *page) newBand(ph result.Phase, i int, faults []timeline.Fault) band {
	from, to := p.grid.fraction(ph.Start), p.grid.fraction(ph.End)
	return band{
		Name: clean(ph.Name), Took: format("seconds", ph.Seconds()) + phaseNote(ph),
		Left: percentAt(from), Width: percentAt(to - from), X: coordinate(from * plotWidth), W: coordinate((to - from) * plotWidth),
		Odd: i%2 == 1, Narrow: to-from < 0.035, from: from, to: to,
		Fault: slices.ContainsFunc(faults, func(f timeline.Fault) bool { return !f.Begin.Before(ph.Start) && f.Begin.Before(ph.End) }),
	}
}

// mostMarks is how many numbered marks an axis has room for; the log below
// the charts has them all.
const mostMarks = 40

// layEvents numbers what was done to the cluster and what happened to it.
// Marks too close to the one before go to a lower lane.
func (p *page) layEvents(events []result.Event) {
	const near, lanes = 0.045, 3
	last := make([]float64, lanes)
	for i := range last {
		last[i] = -1
	}
	for _, e := range events {
		switch e.Kind {
		case result.EventPhaseStart, result.EventPhaseEnd:
			continue
		case result.EventFaultEnd, result.EventExit, result.EventStart, result.EventReady, result.EventLease, result.EventEtcdLeader,
			result.EventRelist, result.EventWatchBreak:
			continue // bars and curves show them; the log has each
		}
		if len(p.Events) == mostMarks {
			return
		}
		at := p.grid.fraction(e.Time)
		lane := 0
		for i := range lanes {
			if at-last[i] > near {
				lane = i
				break
			}
		}
		last[lane] = at
		bar := e.Kind == result.EventFaultBegin
		if bar {
			// Its detail says the kind again, and more.
			e.Kind = result.EventNodeFault // one word for both
			if strings.HasPrefix(e.Detail, e.Name) {
				e.Name, e.Detail = e.Detail, ""
			} else if len(e.On) > 0 {
				e.Name += " on " + strings.Join(e.On, ", ")
			}
		}
		p.Events = append(p.Events, event{
			N: len(p.Events) + 1, Left: percentAt(at), X: coordinate(at * plotWidth), Lane: lane,
			Kind: clean(string(e.Kind)), Name: clean(e.Name), Detail: clean(e.Detail), Clock: clock(p.grid.at(e.Time)),
			Fault: e.Kind == result.EventNodeFault, at: at, bar: bar,
		})
	}
}

func (p *page) eventLog(events []result.Event) tableView {
	t := tableView{
		Caption: "Every event of the timeline",
		Head:    heads("Time", "UTC", "Kind", "What", "Detail"),
	}
	for _, e := range events {
		t.add(clock(p.grid.at(e.Time)), e.Time.UTC().Format("15:04:05.000"), clean(string(e.Kind)), clean(e.Name), clean(e.Detail))
	}
	if len(events) == 0 {
		t.Empty = "No event was recorded."
	}
	return t
}

// laneHeight is in the template: em per lane of marks.
func (p *page) Lanes() int {
	n := 0
	for _, e := range p.Events {
		n = max(n, e.Lane+1)
	}
	return n
}

// EventsNote says that there were more events than marks.
func (p *page) EventsNote() string {
	if len(p.Events) == mostMarks && len(p.Log.Rows) > mostMarks {
		return fmt.Sprintf("The first %d; the log of the timeline below has all of them.", mostMarks)
	}
	return ""
}
