package recovery

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// moment holds the request counts of one load in one time slot of the samples.
type moment struct {
	from, until time.Time
	samples.RequestSlot
	failed int64 // number of failed requests, without canceled ones
	bad    bool  // whether a request failed, was not sent, or took longer than the latency bound
}

// loads returns a fault's effect on each load, sorted by name.
func (in run) loads(f span) []result.LoadRecovery {
	byLoad := map[string][]moment{}
	for _, s := range in.Slots {
		if s.Until().Before(f.Begin.Add(-stretch)) || !f.next.IsZero() && s.Until().After(f.next) {
			continue
		}
		for load, r := range s.Requests {
			m := moment{from: s.From(), until: s.Until(), RequestSlot: r, failed: r.Failures() - r.Failed[samples.Canceled]}
			m.bad = m.failed > 0 || r.Unsent > 0 || r.SlowestExternal() > in.bound(load).Seconds()
			byLoad[load] = append(byLoad[load], m)
		}
	}
	var all []result.LoadRecovery
	for _, load := range slices.Sorted(maps.Keys(byLoad)) {
		if f.Over(byLoad[load][0].from.Add(-stretch)) {
			continue // the load began after the time of the fault
		}
		w := watch{fault: f, r: result.LoadRecovery{Load: load, Bound: in.bound(load).Seconds()}}
		for _, m := range byLoad[load] {
			w.take(m)
		}
		if !w.ran && !f.next.IsZero() {
			continue // the pending requests of the load belong to the next fault
		}
		all = append(all, w.result())
	}
	return all
}

// watch computes the effect of one fault on one load. Call take for each time slot, in order.
type watch struct {
	fault span
	r     result.LoadRecovery

	ran         bool // whether the load has a time slot that belongs to the fault
	from, until time.Time
	failedBy    time.Time // end of the first time slot with a failure
	succeeded   time.Time // end of the first time slot with a success after failedBy
	good        time.Time // start of the current period without bad time slots; zero after a bad one
	back        time.Time // time of the recovery, after which no slot was bad for `stretch`; zero if unknown
	last        time.Time // end of the latest time slot
	pending     tally     // counts of the time slots since the last bad one
}

// tally holds the counts of time slots that are not bad. They become part of the error window if a bad slot follows.
type tally struct {
	succeeded int64
	slowest   float64
}

func (w *watch) take(m moment) {
	if !m.until.After(w.fault.Begin) {
		w.r.AlreadyFailing = w.r.AlreadyFailing || m.bad
		return
	}
	w.ran, w.last = true, m.until
	if !w.back.IsZero() {
		return // later slots do not belong to this fault
	}
	if m.bad {
		w.spoil(m)
	} else {
		w.hold(m)
	}
	if w.succeeded.IsZero() && !w.failedBy.IsZero() && m.Succeeded > 0 && m.until.After(w.failedBy) {
		w.succeeded = m.until
	}
}

// spoil records a slot with failed, unsent or too slow requests.
func (w *watch) spoil(m moment) {
	if !w.r.Affected {
		w.r.Affected, w.from = true, m.from
	}
	w.until, w.good = m.until, time.Time{}
	w.r.Succeeded += w.pending.succeeded + m.Succeeded
	w.r.Slowest = max(w.r.Slowest, w.pending.slowest, m.Slowest)
	w.pending = tally{}
	w.r.Failed += m.failed
	w.r.Unsent += m.Unsent
	if m.failed+m.Unsent == 0 {
		w.r.SlowSlots++
	} else if w.failedBy.IsZero() {
		w.failedBy = m.until
	}
	for outcome, n := range m.RequestSlot.Failed {
		if outcome == samples.Canceled {
			continue
		}
		if w.r.Outcomes == nil {
			w.r.Outcomes = map[string]int64{}
		}
		w.r.Outcomes[outcome] += n
	}
}

// hold records a slot that is not bad. The load has recovered once such slots cover a time of length `stretch` after
// the fault.
func (w *watch) hold(m moment) {
	if m.Succeeded == 0 {
		return // there are only canceled requests, which prove nothing
	}
	if w.r.Affected {
		w.pending.succeeded += m.Succeeded
		w.pending.slowest = max(w.pending.slowest, m.Slowest)
	}
	if w.good.IsZero() {
		w.good = m.from
	}
	if !w.fault.Over(m.until) {
		return
	}
	if since := later(w.good, *w.fault.End); m.until.Sub(since) >= stretch {
		w.back = since
	}
}

func later(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}

func (w *watch) result() result.LoadRecovery {
	r, f := w.r, w.fault
	r.Silent = !w.ran
	if r.Affected {
		r.Open = w.good.IsZero()
		r.ErrorWindow = w.until.Sub(w.from).Seconds()
		r.From, r.Until = seconds(w.from.Sub(f.Begin)), seconds(w.until.Sub(f.Begin))
	}
	if !w.succeeded.IsZero() {
		r.FirstSuccess = seconds(w.succeeded.Sub(f.Begin))
		if f.End != nil {
			r.FirstSuccessAfterEnd = seconds(w.succeeded.Sub(*f.End))
		}
	}
	if !w.back.IsZero() {
		r.Back = seconds(w.back.Sub(*f.End))
	} else {
		r.Detail, r.BackAtLeast = w.notBack(), w.notBackFor()
	}
	return r
}

// notBackFor returns a lower bound, in seconds, of the time from the end of the fault to the recovery of a load, if the
// recovery was not observed. It returns nil if no bound is known.
func (w *watch) notBackFor() *float64 {
	if !w.ran || !w.fault.Over(w.last) {
		return nil
	}
	since := w.last
	if !w.good.IsZero() {
		since = later(w.good, *w.fault.End)
	}
	return seconds(since.Sub(*w.fault.End))
}

// notBack returns the reason why the recovery of the load was not observed.
func (w *watch) notBack() string {
	next := "the load ended"
	if !w.fault.next.IsZero() && !w.last.Before(w.fault.next.Add(-stretch)) {
		next = "the next fault began"
	}
	switch {
	case !w.ran:
		return "no request ended during the fault"
	case w.fault.End == nil:
		return "the end of the fault was not observed"
	case !w.last.After(*w.fault.End):
		return next + " before the fault ended"
	case w.good.IsZero():
		return "the load was outside its bound until the end"
	}
	held := w.last.Sub(later(w.good, *w.fault.End))
	return fmt.Sprintf("the load had been within its bound for only %.1f s when %s; recovery requires %.0f s", held.Seconds(), next, stretch.Seconds())
}

func relists(slots []samples.Slot, f span) result.RelistStorm {
	s := result.RelistStorm{WithinSeconds: stormWithin.Seconds()}
	type count struct {
		from time.Time
		n    int64
	}
	var lately []count // counts of relists in the last second
	var inSecond int64
	for _, slot := range slots {
		if !f.has(slot.Until()) || f.End != nil && slot.From().After(f.End.Add(stormWithin)) {
			continue
		}
		var n int64
		for load, seen := range slot.Streams {
			s.Breaks += seen.Breaks
			if seen.Relists == 0 {
				continue
			}
			if s.ByLoad == nil {
				s.ByLoad = map[string]int64{}
			}
			s.ByLoad[load] += seen.Relists
			n += seen.Relists
		}
		if n == 0 {
			continue
		}
		s.Relists += n
		s.Last = seconds(slot.Until().Sub(f.Begin))
		lately, inSecond = append(lately, count{slot.From(), n}), inSecond+n
		for slot.From().Sub(lately[0].from) >= time.Second {
			inSecond -= lately[0].n
			lately = lately[1:]
		}
		s.PeakPerSecond = max(s.PeakPerSecond, inSecond)
	}
	return s
}
