package capacity

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// otherSearch describes how the recorded search `before` differs from the search to run, and gives a hint. It returns
// "" if they match.
func (s *session) otherSearch(before result.Capacity) string {
	missing := func(from, sets []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(sets), func(set string) bool { return slices.Contains(from, set) }), ", ")
	}
	lost, added := missing(s.c.Overrides, before.Overrides), missing(before.Overrides, s.c.Overrides)
	switch {
	case before.Scenario != s.c.Scenario:
		return fmt.Sprintf("the search in this directory used scenario %s (use the same scenario)", before.Scenario)
	case lost != "":
		return fmt.Sprintf("the earlier trials had the setting %s (set it again)", lost)
	case added != "":
		return fmt.Sprintf("the earlier trials did not have the setting %s (leave it out)", added)
	case !slices.Equal(before.Overrides, s.c.Overrides):
		return fmt.Sprintf("the earlier trials had the settings in the order %s (use the same order)", strings.Join(before.Overrides, ", "))
	case before.Field != s.c.Field || before.From != s.c.From || before.To != s.c.To:
		return fmt.Sprintf("the search in this directory raises %s, but the scenario's capacity section now has %s (restore the scenario, or start a new search)", rangeOf(before), rangeOf(s.c))
	}
	return ""
}

// rangeOf formats a range, such as "nodes.count from 100 to 20000".
func rangeOf(c result.Capacity) string { return fmt.Sprintf("%s from %v to %v", c.Field, c.From, c.To) }

// stays reports whether to keep the directory of a search without a completed trial. The directory stays if the search
// was resumed, or if the directory contains the logs of a first trial or records a load that ended a control plane.
func (s *session) stays() bool {
	_, absent := os.Stat(filepath.Join(s.Dir.Path, trialDir(1)))
	return s.o.Resume != "" || absent == nil || len(s.c.EndedAt) > 0
}

// nextStep returns a hint on how to continue after a search that found no capacity, or "" if there is nothing to do.
func (s *session) nextStep() string {
	least := 0.0
	if s.c.Unit != string(scenario.PerSec) {
		least = 1
	}
	switch e := s.search.Estimate(); e.Answer {
	case AboveRange:
		return fmt.Sprintf("to search higher, add `--set capacity.to=%s`", s.text(4*s.c.To))
	case BelowRange:
		if lower := max(least, s.c.From/10); lower < s.c.From {
			return fmt.Sprintf("to search lower, add `--set capacity.from=%s`", s.text(lower))
		}
	case Unconfirmed:
		return fmt.Sprintf("at the lower end of the interval, the gates did not hold in repeated trials; start a new search with `--set capacity.from=%s`, and with longer phases or on an idle machine", s.text(max(least, e.Low/2)))
	case Unfinished:
		return s.ResumeHint(fmt.Sprintf("--trials %d ", max(s.o.Most, e.Trials)*3/2))
	case GeneratorFirst:
		return "give the generator more CPU; then " + s.ResumeHint("")
	case Unjudged:
		return s.ResumeHint("")
	}
	return ""
}
