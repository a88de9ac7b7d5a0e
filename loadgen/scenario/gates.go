package scenario

import (
	"fmt"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

type gatesFile struct {
	Gates []Gate `yaml:"gates"`
}

// WithGates returns the scenario with its gates replaced by the gates of a file. The file has one field, `gates`,
// written as in a scenario. For a run of a variant, WithGates omits the gates of other variants. The returned error
// joins all errors, one line each, and reports `file` as the file name.
func (s *Scenario) WithGates(file string, data []byte) (*Scenario, error) {
	doc, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var f gatesFile
	if err := doc.Decode(&f); err != nil {
		return nil, err
	}
	if len(f.Gates) == 0 {
		return nil, doc.Errorf("gates", "list gates under gates:, as in a scenario", "there are no gates")
	}
	c := *s
	c.doc, c.Gates, c.Compare, c.AbortOn, c.recorded = doc, f.Gates, nil, nil, false
	for i := range c.Gates {
		if len(c.Gates[i].Over) == 0 {
			c.Gates[i].Over = c.PhaseNames()
		}
	}
	v := &validator{s: &c}
	v.gates()
	if err := c.doc.Join(v.errs); err != nil {
		return nil, err
	}
	if c.Variant != "" {
		c.keepGates()
	}
	return &c, nil
}

// gates checks the gates. Package gate checks the rules that need the list of objectives.
func (v *validator) gates() {
	seen := map[string]bool{}
	for i := range v.s.Gates {
		g := &v.s.Gates[i]
		path := fmt.Sprintf("gates[%d]", i)
		v.uniqueName(path, "gate", g.Name, seen)
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
		v.figure(path, g.Objective, g.Figure)
		v.over(path+".over", g.Over)
		if v.s.Variant == "" {
			v.gateVariants(path, g)
		}
	}
}

// oneSource reports an error unless exactly one of objective and expr (PromQL) is set. `does` is the verb of the error
// message, such as "judges" or "shows".
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

// alertGate checks a gate on an alert, except whether the alert exists. Package gate checks that.
func (v *validator) alertGate(path string, g *Gate) {
	switch {
	case g.Alert == "":
		v.fail(path+".fires", "name an alert of docs/reference/alerts.md", "gate %q says whether an alert fires, but does not name the alert", g.Name)
	case g.Objective != "" || g.Expr != "":
		v.fail(path+".alert", "write two gates", "gate %q has both an alert and an objective or expr", g.Name)
	case g.Fires == nil:
		v.fail(path+".alert", "add fires: true or fires: false", "gate %q does not say whether the alert must fire", g.Name)
	case g.Max != nil || g.Min != nil:
		v.fail(path+".alert", "leave out max and min", "gate %q has both an alert and a bound, but an alert has no value", g.Name)
	case g.Together:
		v.fail(path+".together", "leave it out, because an alert fires at a point in time", "gate %q: `together` does not apply to an alert", g.Name)
	case g.Load != "" || g.Signal != "":
		v.fail(path+".alert", "leave out load and signal", "gate %q: an alert does not take a load or signal", g.Name)
	}
}
