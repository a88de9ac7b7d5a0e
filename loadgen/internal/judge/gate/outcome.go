package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// outcome describes what an alert did in the run. c is a gate that requires the alert not to fire, and g is its result.
func (c Compiled) outcome(ctx context.Context, rec *rundir.Recorded, g result.Gate, h alerting.History) (result.Alert, error) {
	a := result.Alert{Name: c.Alert, Outcome: result.AlertNoData, Expr: g.Expr, Detail: g.Detail}
	if !c.informs {
		a.Verdict = g.Verdict
	}
	var longest alerting.Firing
	var held time.Duration
	for _, f := range h.Firings {
		until := f.Resolved
		if until.IsZero() {
			until = h.End
		}
		if d := until.Sub(f.Pending); f.Alert == c.Alert && (longest.Alert == "" || d > held) {
			longest, held = f, d
		}
	}
	a.ActiveSeconds = held.Seconds()
	blind := ""
	if longest.Alert != "" { // the condition may have held only because a series does not exist
		s, err := c.alert.rules.Look(ctx, rec.Archive, c.Alert, c.alert.known)
		if err != nil {
			return a, err
		}
		blind = s.Blind
	}
	switch fired := h.Of(c.Alert); {
	case blind != "":
		a.Detail = "active, but perhaps only because of missing data: " + blind
	case len(fired) > 0:
		a.Outcome, a.Detail = result.AlertFired, strings.TrimPrefix(g.Detail, c.Alert+": ")
		if g.Verdict != result.Fail {
			a.Detail = "fired outside the phases, at " + clock(fired[0].Fired)
		}
	case longest.Alert != "":
		a.Outcome = result.AlertPending
		a.Detail = fmt.Sprintf("active for %s, shorter than the alert's `for: %s`", span(held), longest.For)
		if longest.Resolved.IsZero() {
			a.Detail = fmt.Sprintf("active for the last %s of the run, shorter than the alert's `for: %s`", span(held), longest.For)
		}
	case g.Verdict == result.Pass, g.TooShort && c.watched(h, rec.Phases()):
		a.Outcome, a.Detail = result.AlertSilent, "did not fire"
	}
	return a, nil
}

// watched reports whether the alert was evaluated in each sequence of consecutive phases that the gate covers. If so, a
// condition that never held would not have held in a longer run or with a shorter `for` either.
func (c Compiled) watched(h alerting.History, phases map[string]result.Phase) bool {
	r := c.alert.reach
	r.For = 0
	windows := c.stretches(c.windows(phases))
	return len(windows) > 0 && r.Fires(h.Start, windows[len(windows)-1].end) &&
		!slices.ContainsFunc(windows, func(w window) bool { return !r.Looks(h.Start, w.start, w.end) })
}
