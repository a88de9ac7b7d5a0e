package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// fitness says how far the scrapes of a target in a window are reliable.
type fitness struct {
	instance string
	// why says why they cannot be trusted at all. Empty means they can.
	why string
	// fault is the kind of fault that kept the target away for a time, or lostAtEdge. Empty means the target
	// was not away.
	fault string
	// known is the part of the window between two scrapes of one process: its counts in that time are known
	// in full. The counts of a process after its last scrape are lost with it.
	known, window time.Duration
	// lost is the number of lost scrapes that change nothing.
	lost int
}

// whole reports whether all counts of the target in the window are known.
func (f fitness) whole() bool { return f.why == "" && f.known == f.window }

// lostAtEdge is the reason if the scrape at the beginning or the end of a window was lost: a counter is
// unknown between there and the next scrape.
const lostAtEdge = "lost scrape"

// stretch is the time between two scrapes.
type stretch struct{ from, to time.Time }

// fit checks the scrapes of a target in a window. If a fault of the scenario kept the target away, lost
// scrapes and restarts do not count against it, but the fault is noted. Otherwise a single lost scrape is one
// sample less, if harmless agrees for the time between the scrapes around it; a nil harmless always agrees.
// Two lost scrapes in a row leave no data.
func (c Compiled) fit(ctx context.Context, a *archive.Archive, w window, instance string, harmless func(stretch) bool) (f fitness, err error) {
	f = fitness{instance: instance, window: w.end.Sub(w.start)}
	// Include the scrapes around the window, because a gap may begin before it.
	up, err := a.Samples(ctx, w.start.Add(-nearby), w.end.Add(nearby), archive.Equal(model.MetricNameLabel, "up"), archive.Equal("instance", instance))
	if err != nil {
		return f, err
	}
	excuse := func(from, until time.Time) bool {
		fault := c.outages.Fault(instance, from, until)
		if fault != "" {
			f.fault = fault
		}
		return fault != ""
	}
	atStart, atEnd := false, false
	for _, s := range up {
		for i, p := range s.Points {
			if p.T.Before(w.start) || p.T.After(w.end) {
				continue
			}
			if p.V == 0 && !excuse(p.T, p.T) {
				if gap, alone := around(s.Points, i); !alone || harmless != nil && !harmless(gap) {
					f.why = fmt.Sprintf("a scrape of %s was lost in %s", instance, w.name)
					return f, nil
				}
				f.lost++
				if p.T.Equal(w.start) || p.T.Equal(w.end) {
					f.fault = lostAtEdge
				}
			}
			atStart = atStart || p.T.Equal(w.start)
			atEnd = atEnd || p.T.Equal(w.end)
		}
	}
	if !atStart || !atEnd {
		f.why = fmt.Sprintf("%s was not scraped at the boundaries of %s", instance, w.name)
		return f, nil
	}
	started, err := a.Samples(ctx, w.start, w.end, archive.Equal(model.MetricNameLabel, "process_start_time_seconds"), archive.Equal("instance", instance))
	if err != nil {
		return f, err
	}
	var first float64
	last := w.start
	for _, s := range started {
		for _, p := range s.Points {
			switch {
			case first == 0:
			case archive.SameProcess(first, p.V):
				f.known += p.T.Sub(last)
			case !excuse(last, p.T):
				f.why = fmt.Sprintf("%s restarted in %s", instance, w.name)
				return f, nil
			}
			first, last = p.V, p.T
		}
	}
	if first == 0 && !excuse(w.start, w.end) {
		f.why = fmt.Sprintf("%s shows no process_start_time_seconds in %s: a restart could not be told", instance, w.name)
	}
	return f, nil
}

// nearby is the distance from a window within which fit looks for the adjacent scrapes: record.interval is at
// most this long.
const nearby = 5 * time.Minute

// around returns the stretch between the scrapes before and after a lost one. At the first and the last
// scrape of the run it ends at the lost scrape. alone is false if an adjacent scrape was lost too.
func around(up []archive.Point, i int) (gap stretch, alone bool) {
	gap = stretch{up[i].T, up[i].T}
	if i > 0 {
		gap.from, alone = up[i-1].T, up[i-1].V != 0
	}
	if i+1 < len(up) {
		gap.to, alone = up[i+1].T, up[i+1].V != 0 && (alone || i == 0)
	}
	return gap, alone
}

// gapRule says what a value is worth if a fault kept a target away for a part of the window, so that some of
// its counts are unknown.
type gapRule string

const (
	// gapEach: each target must be known for half of the window.
	gapEach gapRule = ""
	// gapShared: the counts of a component's instances are added up. One instance that is known for the whole
	// window is enough, because it served what the unknown ones did not. Otherwise gapEach applies.
	gapShared gapRule = "shared"
	// gapCount: the value counts events, so it is at least the known count.
	gapCount gapRule = "count"
	// gapCountSeenByAll: as gapCount, but each instance counts the events of all, so one instance that is
	// known for the whole window is enough.
	gapCountSeenByAll gapRule = "countSeenByAll"
	// gapAgainst: missing data makes the value worse, so it is judged unchanged.
	gapAgainst gapRule = "against"
)

// lostNotes notes the number of single lost scrapes of each target in a window.
func lostNotes(targets []fitness, of string) (notes []string) {
	for _, t := range targets {
		if t.lost > 0 && t.why == "" {
			notes = append(notes, fmt.Sprintf("scrapes of %s lost in %s: %d, none next to another", t.instance, of, t.lost))
		}
	}
	return notes
}

// gaps applies the rule to all targets of a window. It returns why there is no value, notes, and whether the
// value is only a lower bound.
func (rule gapRule) gaps(targets []fitness, of string) (why string, notes []string, atLeast bool) {
	for _, t := range targets {
		if t.why != "" {
			return t.why, nil, false
		}
	}
	for _, t := range targets {
		seen := fmt.Sprintf("%s of %s (%s)", show("seconds", t.known.Seconds()), show("seconds", t.window.Seconds()), t.fault)
		switch {
		case t.fault == "":
			continue
		case t.whole():
			notes = append(notes, fmt.Sprintf("%s did not answer for a time (%s) and has counted on", t.instance, t.fault))
			continue
		}
		spoken := (rule == gapShared || rule == gapCountSeenByAll) && slices.ContainsFunc(targets, func(other fitness) bool {
			return other.whole() && control.ComponentKind(other.instance) == control.ComponentKind(t.instance)
		})
		switch rule {
		case gapEach, gapShared:
			if !spoken && 2*t.known < t.window {
				return fmt.Sprintf("what %s counted in %s is known for %s only", t.instance, of, seen), nil, false
			}
		case gapCount, gapCountSeenByAll:
			atLeast = atLeast || !spoken
		}
		notes = append(notes, fmt.Sprintf("what %s counted is in it for %s", t.instance, seen))
	}
	return "", notes, atLeast
}
