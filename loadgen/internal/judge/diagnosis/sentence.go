package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// sentence returns a one-line summary of a cause: which signals deviated, since when, and which did not.
func sentence(c result.Cause, evidence []episode) string {
	var moved []string
	byStrength := slices.SortedStableFunc(slices.Values(evidence), func(a, b episode) int { return cmp.Compare(b.strength, a.strength) })
	for i, e := range byStrength {
		if slices.ContainsFunc(byStrength[:i], func(o episode) bool { return o.signal == e.signal }) {
			continue // name only the strongest episode of each signal
		}
		moved = append(moved, e.text())
	}
	var b strings.Builder
	from := "from"
	if slices.ContainsFunc(evidence, func(e episode) bool { return e.earlier && !e.began.After(c.Began) }) {
		from = "from before"
	}
	fmt.Fprintf(&b, "%s: %s %s %s", strings.Join(c.Components, ", "), and(moved), from, c.Began.UTC().Format(time.TimeOnly))
	if len(c.Calm) > 0 && byStrength[0].signal.Unit != unitEvent {
		fmt.Fprintf(&b, ". Unchanged: %s", strings.Join(c.Calm, ", "))
	}
	return b.String()
}

// text returns the deviation as text, such as "WAL fsync (606 µs -> 26 ms)".
func (e episode) text() string {
	switch {
	case e.signal.Unit == unitEvent:
		return e.signal.What
	case e.calm != nil && e.signal.Over == nil:
		return fmt.Sprintf("%s (%s -> %s)", e.signal.What, value(*e.calm, e.signal), value(e.under, e.signal))
	}
	return e.signal.What + " (" + value(e.under, e.signal) + ")"
}

func and(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

const (
	unitEvent   = "event" // unit of signals without a value, such as a restart: only their time counts
	unitSeconds = "seconds"
)

func value(v float64, s *signal) string { return chart.Format(scenario.Unit(s.Unit), v) }
