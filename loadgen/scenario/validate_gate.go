package scenario

import "fmt"

// gates checks what can be known without the objectives; package gate checks
// the rest.
func (v *validator) gates() {
	seen := map[string]bool{}
	for i := range v.s.Gates {
		g := &v.s.Gates[i]
		path := fmt.Sprintf("gates[%d]", i)
		v.name(path+".name", g.Name)
		v.unique(path, "gate", g.Name, "gates are told apart by name", seen)
		switch {
		case g.Alert != "" || g.Fires != nil:
			v.alertGate(path, g)
		case !v.oneSource(path, fmt.Sprintf("gate %q", g.Name), "judges", g.Objective, g.Expr):
		case g.Max == nil && g.Min == nil:
			v.fail(path, "add max: or min:", "gate %q has no bound", g.Name)
		case g.Max != nil && g.Min != nil:
			v.fail(path+".min", "write two gates", "gate %q has both max and min", g.Name)
		}
		v.signal(path+".signal", g.Signal)
		v.over(path+".over", g.Over)
		if v.s.Variant == "" {
			v.gateVariants(path, g)
		}
	}
}

// oneSource checks that a value comes from an objective or from PromQL, and not
// from both; does names the use of the value.
func (v *validator) oneSource(path, what, does, objective, expr string) bool {
	switch {
	case objective == "" && expr == "":
		v.fail(path, "name an objective, or write a PromQL expr", "%s %s nothing", what, does)
	case objective != "" && expr != "":
		v.fail(path+".expr", "keep one of them", "%s has both objective and expr", what)
	default:
		return true
	}
	return false
}
