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

// fitness says to what extent a gate can use the scrapes of a target in a window (a part of the run).
type fitness struct {
	instance string
	// why is the reason why the gate cannot use the scrapes at all. Empty means that it can.
	why string
	// fault is the kind of fault that made the target unreachable for a time, or lostAtEdge. It is "" if the target was
	// reachable in the whole window.
	fault string
	// window is the length of the window. `known` is the length of the part for which the counts are known: from the
	// first to the last scrape of each process of the target. A process's counts after its last scrape are lost.
	known, window time.Duration
	// lost is the number of lost scrapes that are ignored.
	lost int
}

// whole reports whether the counts of the target are known for the whole window.
func (f fitness) whole() bool { return f.why == "" && f.known == f.window }

// lostAtEdge is the value of fitness.fault if the scrape at the start or the end of a window was lost. Counts are then
// unknown between that time and the nearest scrape inside the window.
const lostAtEdge = "lost scrape"

// stretch is the time range between two scrapes.
type stretch struct{ from, to time.Time }

// fit checks the scrapes of a target in a window. It excuses lost scrapes and restarts while a fault of the scenario
// made the target unreachable, and records the fault. Other restarts, and two lost scrapes in a row, mean that there is
// no data. fit ignores a single lost scrape if harmless returns true for the time between the scrapes before and after,
// or if harmless is nil.
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
		f.why = fmt.Sprintf("%s exposed no process_start_time_seconds in %s, so a restart could not be detected", instance, w.name)
	}
	return f, nil
}

// nearby is how far outside a window the method `fit` looks for the previous and the next scrape. It equals the maximum
// of record.interval.
const nearby = 5 * time.Minute

// around returns the time from the scrape before the lost scrape i to the scrape after it. On a side without a scrape,
// the time ends at the lost one. `alone` is false if the scrape before or after was lost too.
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

// gapRule says how to judge a value if a fault made a target unreachable for a part of the window, so that some counts
// of the target are unknown.
type gapRule string

const (
	// gapEach requires that the counts of each target are known for at least half of the window.
	gapEach gapRule = ""
	// gapShared is for counts that are added up over the instances of a component. It requires that the counts of at
	// least one instance are known for the whole window, because this instance also served the requests of unreachable
	// instances. Without such an instance, gapEach applies.
	gapShared gapRule = "shared"
	// gapCount is for a value that counts events: the known count is a lower bound of the value.
	gapCount gapRule = "count"
	// gapCountSeenByAll is like gapCount, for events that every instance counts. The value is exact if the
	// counts of one instance are known for the whole window.
	gapCountSeenByAll gapRule = "countSeenByAll"
	// gapAgainst is for values that missing data can only make worse. The measured value is judged, because the true
	// value is at least as good.
	gapAgainst gapRule = "against"
)

// lostNotes returns a note for each target whose lost scrapes the gate ignores. `of` is the name of the window.
func lostNotes(targets []fitness, of string) (notes []string) {
	for _, t := range targets {
		if t.lost > 0 && t.why == "" {
			notes = append(notes, fmt.Sprintf("scrapes of %s lost in %s: %d, no two in a row", t.instance, of, t.lost))
		}
	}
	return notes
}

// gaps applies the rule to the targets of a window, whose name is `of`. If the value cannot be judged, gaps returns
// only the reason. Otherwise it returns notes, and whether the value is only a lower bound.
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
			notes = append(notes, fmt.Sprintf("%s did not answer for part of the time (%s), but its counts are complete", t.instance, t.fault))
			continue
		}
		spoken := (rule == gapShared || rule == gapCountSeenByAll) && slices.ContainsFunc(targets, func(other fitness) bool {
			return other.whole() && control.ComponentKind(other.instance) == control.ComponentKind(t.instance)
		})
		switch rule {
		case gapEach, gapShared:
			if !spoken && 2*t.known < t.window {
				return fmt.Sprintf("the counts of %s in %s cover only %s", t.instance, of, seen), nil, false
			}
		case gapCount, gapCountSeenByAll:
			atLeast = atLeast || !spoken
		}
		notes = append(notes, fmt.Sprintf("the counts of %s cover %s", t.instance, seen))
	}
	return "", notes, atLeast
}
