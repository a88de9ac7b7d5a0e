package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
)

// silenceDoubts returns reasons why the alert's silence proves nothing.
func (c Compiled) silenceDoubts(ctx context.Context, a *archive.Archive, h alerting.History, windows []window) (why, notes []string, err error) {
	for _, w := range windows {
		if w.missing != "" {
			why = append(why, w.missing)
		}
	}
	if err := h.Failed[c.Alert]; err != nil {
		return append(why, fmt.Sprintf("%s cannot be evaluated: %v", c.Alert, err)), nil, nil
	}
	s, err := c.alert.rules.Look(ctx, a, c.Alert, c.alert.known)
	if err != nil {
		return nil, nil, err
	}
	if s.Blind != "" {
		return append(why, s.Blind), nil, nil
	}
	if len(s.Unborn) > 0 {
		notes = append(notes, strings.Join(s.Unborn, ", ")+" had no series yet")
	}
	why = append(why, c.late(h.Start, windows)...)
	for _, w := range windows {
		if w.missing != "" {
			continue
		}
		var targets []fitness
		for _, instance := range s.Instances {
			t, err := c.fit(ctx, a, w, instance)
			if err != nil {
				return nil, nil, err
			}
			if t.why != "" {
				why = append(why, t.why)
				continue
			}
			targets = append(targets, t)
		}
		lost, more, _ := gapEach.gaps(targets, w.name)
		if notes = append(notes, more...); lost != "" {
			why = append(why, lost)
		}
	}
	return why, notes, nil
}

// late says why an alert had no time to fire, or to be looked at, in the windows.
// Rules were first evaluated at a given time.
func (c Compiled) late(first time.Time, windows []window) (why []string) {
	r := c.alert.reach
	if n := len(windows); n > 0 && windows[n-1].missing == "" && !r.Fires(first, windows[n-1].end) {
		var needs []string
		if r.For > 0 {
			needs = append(needs, "its for is "+span(r.For))
		}
		if r.Back > 0 {
			needs = append(needs, "it looks "+span(r.Back)+" back")
		}
		why = append(why, fmt.Sprintf("%s cannot fire within %s: %s", c.Alert, span(windows[n-1].end.Sub(first)), strings.Join(needs, ", and ")))
	}
	for _, w := range c.stretches(windows) {
		if !r.Looks(first, w.start, w.end) {
			why = append(why, fmt.Sprintf("%s was not evaluated in %s: that is done every %s (write interval: into the groups of it and of the records that it reads)", c.Alert, w.name, span(r.Every)))
		}
	}
	return why
}

// stretches are the windows with those of phases that follow each other made one.
func (c Compiled) stretches(windows []window) (all []window) {
	last := -2 // the place of the phase before
	for _, w := range windows {
		at := slices.Index(c.order, w.name)
		switch {
		case w.missing != "":
			continue
		case at == last+1:
			all[len(all)-1].extend(w)
		default:
			all = append(all, w)
		}
		last = at
	}
	return all
}
