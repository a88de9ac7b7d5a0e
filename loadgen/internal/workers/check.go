package workers

import (
	"fmt"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/load/kind"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Check refuses a number of workers that the scenario's loads cannot be divided among. Errors name the load.
func Check(o Options, s *scenario.Scenario) error {
	switch {
	case o.Count == 0 && o.Listen == "" && o.Starter == nil:
		return nil
	case o.Count < 1 || o.Count > Most:
		return exitcode.Usagef("--workers %d: between 1 and %d", o.Count, Most)
	}
	divided := 0
	for _, l := range s.Loads() {
		if !kind.Divides(l.Kind) {
			continue
		}
		divided++
		if most, of := kind.MostWorkers(l.Load); most > 0 && o.Count > most {
			return exitcode.UsageError(s.Errorf(l.Path, fmt.Sprintf("at most --workers %d", most),
				"load %s has %d %s, too few for %d workers", l.Name, most, of, o.Count))
		}
	}
	if divided == 0 {
		return exitcode.UsageError(s.Errorf("phases", "run it without --workers",
			"scenario %s has no load that workers can divide (loads of kinds history, replay and custom, actions and nodes stay in one process)", s.Name))
	}
	return nil
}

// Whole names the loads that workers do not divide: they run in the coordinator.
func Whole(s *scenario.Scenario) (names []string) {
	for _, l := range s.Loads() {
		if !kind.Divides(l.Kind) {
			names = append(names, l.Name)
		}
	}
	return names
}
