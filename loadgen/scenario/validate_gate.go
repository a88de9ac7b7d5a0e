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
		case g.Objective == "" && g.Expr == "":
			v.fail(path, "name an objective, or write a PromQL expr", "gate %q judges nothing", g.Name)
		case g.Objective != "" && g.Expr != "":
			v.fail(path+".expr", "keep one of them", "gate %q has both objective and expr", g.Name)
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
