package scenario

import (
	"strings"
)

// CustomFigure is the name of the objective that judges a value (figure) of a custom measurement.
const CustomFigure = "custom-figure"

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
