package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// customFigure reads, in each phase, the custom measurement's figure that the gate names (MEASUREMENT/FIGURE).
func customFigure(e evidence) finding {
	measurement, name, _ := strings.Cut(e.Figure, "/")
	var known []string
	f := e.perPhase(func(p result.Phase) reading {
		i := slices.IndexFunc(p.Custom, func(c result.Custom) bool { return c.Measurement == measurement })
		if i < 0 {
			return reading{missing: "measurement " + measurement + " was not made in " + p.Name}
		}
		made := p.Custom[i]
		if made.Error != "" {
			return reading{missing: fmt.Sprintf("measurement %s in %s: %s", measurement, p.Name, made.Error)}
		}
		for _, figure := range made.Figures {
			if figure.Name == name {
				return e.customReading(figure)
			}
			known = append(known, figure.Name)
		}
		return reading{nothing: true}
	})
	if len(known) > 0 && !slices.ContainsFunc(f.readings, func(r reading) bool { return !r.nothing }) {
		slices.Sort(known)
		why := fmt.Sprintf("measurement %s has no figure %s; it has %s", measurement, name, strings.Join(slices.Compact(known), ", "))
		for i := range f.readings {
			f.readings[i].missing, f.readings[i].nothing = why, false
		}
	}
	return f
}

// customReading returns a reading with the value of a figure of a custom measurement. If the figure and the gate's
// bound have different units, the reading has a reason instead of a value. A bound without a unit fits any figure.
func (e evidence) customReading(f result.CustomFigure) reading {
	if u := e.objective.Unit; u != scenario.Number && string(u) != f.Unit {
		return reading{missing: fmt.Sprintf("figure %s is in %s, but its bound is in %s", e.Figure, nameUnit(scenario.Unit(f.Unit)), u)}
	}
	return reading{value: f.Value}
}

func nameUnit(u scenario.Unit) scenario.Unit {
	if u == scenario.Number {
		return "a bare number"
	}
	return u
}
