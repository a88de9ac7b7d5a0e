package gate

import (
	"fmt"
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
)

// gapRule says what a value is worth if a fault kept a target away for a part of the
// window, so that not all it counted is known.
type gapRule int

const (
	// gapEach: each target must be known for half of the window.
	gapEach gapRule = iota
	// gapShared: the counts of a component's instances are added up. One that is known
	// for all of the window is enough, as it served what the others did not. Else it is
	// as gapEach.
	gapShared
	// gapCount: it counts what happened: at least what is known.
	gapCount
	// gapCountSeenByAll: the same, but each instance counts what happens to all: one
	// that is known for all of the window is enough.
	gapCountSeenByAll
	// gapAgainst: what is missing makes the value worse: it is judged as it is.
	gapAgainst
)

// gaps applies the rule to all targets of a window: why there is no value, or what
// is to be said of it, and whether it is only a least one.
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
