package scenario

// alertGate checks a gate that names an alert; package gate knows the alerts.
func (v *validator) alertGate(path string, g *Gate) {
	switch {
	case g.Alert == "":
		v.fail(path+".fires", "name the alert: it stands in docs/reference/alerts.md", "gate %q says whether an alert fires, and not which", g.Name)
	case g.Objective != "" || g.Expr != "":
		v.fail(path+".alert", "write two gates", "gate %q has an alert and an objective or expr", g.Name)
	case g.Fires == nil:
		v.fail(path+".alert", "add fires: true or fires: false", "gate %q does not say whether the alert must fire", g.Name)
	case g.Max != nil || g.Min != nil:
		v.fail(path+".alert", "leave max and min out", "gate %q has a bound: an alert fires or does not", g.Name)
	case g.Load != "" || g.Signal != "":
		v.fail(path+".alert", "leave load and signal out", "gate %q: an alert is about no load or signal of the scenario", g.Name)
	}
}
