package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// CustomFigure is the name of the objective that judges a value (figure) of a custom measurement.
const CustomFigure = "custom-figure"

// CustomPart names a custom action or measurement, which the Go program that runs the scenario must provide.
type CustomPart struct{ Name, Path string }

// CustomActions lists the custom actions, without duplicate names.
func (s *Scenario) CustomActions() []CustomPart {
	var all []CustomPart
	for i, p := range s.Phases {
		for j, a := range p.Actions {
			if a.Kind == "custom" {
				all = addPart(all, CustomPart{a.Name, fmt.Sprintf("phases[%d].actions[%d]", i, j)})
			}
		}
	}
	return all
}

// CustomMeasurements lists the measurements whose figures gates or the comparison of variants use, without duplicates.
// It omits gates that apply only to some variants.
func (s *Scenario) CustomMeasurements() []CustomPart {
	var all []CustomPart
	for _, g := range s.Gates {
		if len(g.Variants) == 0 {
			all = addPart(all, CustomPart{measurementOf(g.Figure), "gates." + g.Name + ".figure"})
		}
	}
	for _, f := range s.Compare {
		all = addPart(all, CustomPart{measurementOf(f.Figure), "compare." + f.Name + ".figure"})
	}
	return all
}

func addPart(all []CustomPart, p CustomPart) []CustomPart {
	if p.Name == "" || slices.ContainsFunc(all, func(other CustomPart) bool { return other.Name == p.Name }) {
		return all
	}
	return append(all, p)
}

func measurementOf(figure string) string {
	name, _, _ := strings.Cut(figure, "/")
	return name
}

func (v *validator) figure(path, objective, figure string) {
	measurement, name, ok := strings.Cut(figure, "/")
	switch {
	case objective == CustomFigure && figure == "":
		v.fail(path, "write figure: MEASUREMENT/FIGURE, for example reconcile/p99", "objective %s requires a figure", CustomFigure)
	case figure == "":
	case objective != CustomFigure:
		v.fail(path+".figure", "leave it out, or write objective: "+CustomFigure, "only objective %s has this field", CustomFigure)
	case !ok || !dnsLabel.MatchString(measurement) || !dnsLabel.MatchString(name):
		v.fail(path+".figure", "write MEASUREMENT/FIGURE, for example reconcile/p99; names have lower-case letters, digits and -", "%q is not a figure", figure)
	}
}
