package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/internal/userfile"
)

// maxVariants is the maximum number of variants. Each variant is a parsed copy of the scenario and takes memory.
const maxVariants = 100

// parseVariants parses the scenario once for each variant, with the variant's fields applied. Errors name the variant.
func (s *Scenario) parseVariants(file string, data []byte, overrides []string) error {
	if n := len(s.Variants); n > maxVariants || n*len(data) > userfile.Text {
		return s.Errorf("variants", fmt.Sprintf("at most %d variants, and at most %d MiB for the file's size times the number of variants", maxVariants, userfile.Text>>20),
			"%d variants are too many for a file of %d bytes", n, len(data))
	}
	var errs []error
	for i, v := range s.Variants {
		read, err := parse(&Scenario{Variant: v.Name}, file, data, overrides, func(doc *strictyaml.Document) error {
			return doc.Overlay(fmt.Sprintf("variants[%d].set", i), "with variant "+v.Name)
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.variants = append(s.variants, read)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	// If a fault in one variant needs networkFaults, turn networkFaults on in all variants. Otherwise only some
	// variants would have proxies in their links, and this would distort the comparison.
	for _, from := range s.variants {
		if !from.linksOn {
			continue
		}
		for _, to := range append([]*Scenario{s}, s.variants...) {
			if to.needLinks("controlPlane.networkFaults") {
				to.linksOf = " as in variant " + from.Variant
			}
		}
	}
	return nil
}

// needLinks turns networkFaults on for the fault at path, and returns true. If the scenario already sets networkFaults
// or has links, needLinks changes nothing and returns false.
func (s *Scenario) needLinks(path string) bool {
	if s.ControlPlane.NetworkFaults != "" || s.ControlPlane.HasLinks() {
		return false
	}
	s.ControlPlane.NetworkFaults = control.NetworkFaultsOn
	s.linksOn, s.linksFor = true, path
	return true
}

func (s *Scenario) keepGates() {
	s.Gates = slices.DeleteFunc(s.Gates, func(g Gate) bool { return len(g.Variants) > 0 && !slices.Contains(g.Variants, s.Variant) })
	for i := range s.Gates {
		s.Gates[i].Variants = nil // the other variants are unknown from here on
	}
}

// AllVariants returns the scenarios of all variants, in order.
func (s *Scenario) AllVariants() []*Scenario { return s.variants }

// WithVariant returns the scenario of one variant.
func (s *Scenario) WithVariant(name string) (*Scenario, error) {
	known := namesOf(s.variants, func(v *Scenario) string { return v.Variant })
	if i := slices.Index(known, name); i >= 0 {
		return s.variants[i], nil
	}
	hint := "it has none"
	if len(known) > 0 {
		hint = "it has " + strings.Join(known, ", ") + "; all runs them one after another"
	}
	if near := strictyaml.Suggest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return nil, fmt.Errorf("--variant %s: scenario %s has no such variant (%s)", name, s.Name, hint)
}

// Warnings returns one line, with file, line and field, for each setting that is deprecated or not advisable, and for each
// setting that was turned on automatically.
func (s *Scenario) Warnings() []string {
	var all []string
	if s.doc != nil {
		for _, e := range s.doc.Deprecated {
			all = append(all, e.Error())
		}
	}
	for _, p := range s.ControlPlane.Warnings() {
		all = append(all, s.Errorf("controlPlane."+p.Path, p.Hint, "%s", p.Msg).Error())
	}
	if s.linksOn {
		all = append(all, s.Errorf(s.linksFor, "to make this explicit, set controlPlane.networkFaults: on",
			"networkFaults was turned on%s, so traffic between components passes through proxies, which can delay or cut it", s.linksOf).Error())
	}
	return append(all, s.stubs()...)
}

// Faults lists all faults with their paths.
func (s *Scenario) Faults() []PlacedFault {
	var all []PlacedFault
	for i := range s.Phases {
		p := &s.Phases[i]
		for j := range p.Faults {
			all = append(all, PlacedFault{Fault: &p.Faults[j], Phase: p.Name, Path: fmt.Sprintf("phases[%d].faults[%d]", i, j)})
		}
	}
	return all
}

// everyVariant stands for all variants on the command line, so no variant may have this name.
const everyVariant = "all"

// fixed lists the fields that a variant must not set, because a comparison needs them to be equal.
var fixed = []string{"apiVersion", "kind", "name", "variants", "variant", "compare", "capacity"}

func (v *validator) variants() {
	if v.s.Variant != "" && len(v.s.Variants) > 0 {
		v.fail("variant", "leave it out; only a run writes this field", "a scenario with variants cannot have this field")
	}
	seen := map[string]bool{}
	for i := range v.s.Variants {
		w := &v.s.Variants[i]
		path := fmt.Sprintf("variants[%d]", i)
		v.uniqueName(path, "variant", w.Name, seen)
		if w.Name == everyVariant {
			v.fail(path+".name", "because --variant all means every variant", "a variant cannot have the name %q", everyVariant)
		}
		for name := range w.Set {
			field, _, _ := strings.Cut(strings.ReplaceAll(name, "[", "."), ".")
			if slices.Contains(fixed, field) {
				v.fail(path+".set", "all variants of a scenario have the same value", "a variant cannot set %s", field)
			}
			if name == "gates" {
				v.fail(path+".set", "set a single bound, for example gates.NAME.max, or list the variants of a gate in its field variants", "a variant cannot replace all gates")
			}
		}
	}
}

func (v *validator) over(path string, names []string) {
	for j, name := range names {
		if v.s.Phase(name) == nil {
			v.fail(fmt.Sprintf("%s[%d]", path, j), "phases: "+strings.Join(v.s.PhaseNames(), ", "), "unknown phase %q", name)
		}
		if slices.Contains(names[:j], name) && (v.s.doc == nil || v.s.doc.Written(path)) { // otherwise the check of phases reports it
			v.fail(fmt.Sprintf("%s[%d]", path, j), "name each phase once", "phase %q appears twice", name)
		}
	}
}

func (v *validator) signal(path, name string) {
	if name != "" {
		v.known(path, "signal", name, namesOf(v.s.Signals, func(s Signal) string { return s.Name }))
	}
}

// known reports an error if name is not in `all`. `what` says what name stands for, such as "signal".
func (v *validator) known(path, what, name string, all []string) {
	if slices.Contains(all, name) {
		return
	}
	hint := "the scenario defines none"
	if len(all) > 0 {
		hint = what + "s: " + strings.Join(all, ", ")
	}
	v.fail(path, hint, "unknown %s %q", what, name)
}

func namesOf[T any](all []T, name func(T) string) (names []string) {
	for _, one := range all {
		names = append(names, name(one))
	}
	return names
}

func (v *validator) signals() {
	seen := map[string]bool{}
	for i := range v.s.Signals {
		s := &v.s.Signals[i]
		path := fmt.Sprintf("signals[%d]", i)
		v.uniqueName(path, "signal", s.Name, seen)
		if s.Expr == "" {
			v.fail(path+".expr", "write a PromQL expression that shows the incident", "signal %q has no expr", s.Name)
		}
		v.unit(path+".unit", s.Unit)
		for _, window := range []struct {
			field  string
			phases []string
		}{{"steady", s.Steady}, {"under", s.Under}} {
			if len(window.phases) == 0 {
				v.fail(path+"."+window.field, "phases: "+strings.Join(v.s.PhaseNames(), ", "), "signal %q names no phases in %s", s.Name, window.field)
			}
		}
		v.over(path+".steady", s.Steady)
		v.over(path+".under", s.Under)
		v.over(path+".after", s.After)
		if !v.s.recorded {
			v.apart(path, s)
		}
	}
}

// apart reports an error if a phase is in two of a signal's lists `steady`, `under` and `after`, or if the last phase
// of `after` precedes the first phase of `under`.
func (v *validator) apart(path string, s *Signal) {
	both := func(field string, phases []string, other string, others []string) {
		for j, name := range phases {
			if slices.Contains(others, name) {
				v.fail(fmt.Sprintf("%s.%s[%d]", path, field, j), "list it in only one of them", "phase %q is also listed in %s", name, other)
			}
		}
	}
	both("under", s.Under, "steady", s.Steady)
	both("after", s.After, "steady", s.Steady)
	both("after", s.After, "under", s.Under)
	names := v.s.PhaseNames()
	if len(s.Under) > 0 && len(s.After) > 0 {
		if first := slices.Index(names, s.Under[0]); slices.Index(names, s.After[len(s.After)-1]) < first {
			v.fail(path+".after", "name phases that follow "+s.Under[0], "these phases come before the phases with the fault")
		}
	}
}

// compare checks the rows of the comparison of variants. Package gate checks rules that need the list of objectives.
func (v *validator) compare() {
	seen := map[string]bool{}
	for i := range v.s.Compare {
		f := &v.s.Compare[i]
		path := fmt.Sprintf("compare[%d]", i)
		v.uniqueName(path, "figure", f.Name, seen)
		v.oneSource(path, fmt.Sprintf("figure %q", f.Name), "shows", f.Objective, f.Expr)
		if v.unit(path+".unit", f.Unit); f.Unit != "" && f.Expr == "" && f.Objective != CustomFigure {
			v.fail(path+".unit", "leave it out", "objective %s already has a unit", f.Objective)
		}
		if f.Better != "" {
			if v.oneOf(path+".better", f.Better, "lower", "higher"); f.Expr == "" && f.Objective != CustomFigure {
				v.fail(path+".better", "leave it out", "objective %s already defines which values are better", f.Objective)
			}
		}
		v.signal(path+".signal", f.Signal)
		v.figure(path, f.Objective, f.Figure)
		v.over(path+".over", f.Over)
		if s := f.Spread; s != nil && (!s.Fits(Ratio) || s.Value <= 0 || s.Value > 1) {
			v.fail(path+".spread", "for example 4%", "%s is not a valid spread", s)
		}
	}
}

// capacity checks the range of the search. Package capacity checks both ends later, when it reads the scenario with
// each of them.
func (v *validator) capacity() {
	c := v.s.Capacity
	if c == nil {
		return
	}
	const hint = "for example background.NAME.rate or nodes.count"
	switch section, _, _ := strings.Cut(c.Field, "."); section {
	case "":
		v.fail("capacity.field", hint, "is missing")
	case "controlPlane", "seed", "record", "gates", "compare", "signals", "variants", "capacity":
		v.fail("capacity.field", hint, "%s does not change the load", c.Field)
	}
	switch unit := c.Unit(); {
	case !c.From.Fits(unit) || !c.To.Fits(unit):
		v.fail("capacity", "write two rates, such as 50/s, or two numbers", "%s and %s have different units", c.From, c.To)
	case c.From.Value <= 0 || c.To.Value <= c.From.Value:
		v.fail("capacity", "from must be greater than 0, and to must be greater than from", "the range from %s to %s is invalid", c.From, c.To)
	}
}

func (v *validator) unit(path, unit string) {
	if unit != "" {
		v.oneOf(path, unit, string(Seconds), string(Ratio), string(Size), string(Count), string(PerSec), string(PerHour))
	}
}

func (v *validator) gateVariants(path string, g *Gate) {
	all := namesOf(v.s.Variants, func(w Variant) string { return w.Name })
	for j, name := range g.Variants {
		v.known(fmt.Sprintf("%s.variants[%d]", path, j), "variant", name, all)
	}
}

func (a *Action) workloadFields(recorded bool) []field {
	return []field{
		{"replicas", a.Replicas != 0, "deploy scale"}, {"service", a.Service, "deploy"}, {"evictAfter", a.EvictAfter != 0, "deploy"},
		{"cpu", a.CPU != "", "deploy demand"}, {"autoscale", a.Autoscale != Autoscale{}, "deploy"}, {"memory", a.Memory != "", "deploy"},
		{"priorityClass", a.PriorityClass != "", "deploy"}, {"gang", a.Gang != 0, "deploy"}, {"schedulerName", a.SchedulerName != "", "deploy"},
		{"devices", a.Devices != 0, "deploy"},
		{"antiAffinity", a.AntiAffinity != "", "deploy"}, {"topologySpread", len(a.TopologySpread) > 0, "deploy"},
		{"maxSurge", a.MaxSurge != "" && !recorded, "rollingUpdate"}, {"maxUnavailable", a.MaxUnavailable != "" && !recorded, "rollingUpdate"},
		{"workload", a.Workload != "", "deploy"}, {"podManagementPolicy", a.PodManagementPolicy != "", "deploy"}, {"runFor", a.RunFor != 0, "deploy"},
		{"backoffLimit", a.BackoffLimit != 0, "deploy"}, {"every", a.Every != 0, "deploy"}, {"concurrencyPolicy", a.ConcurrencyPolicy != "", "deploy"},
		{"object", a.Object != nil, "create"}, {"count", a.Count != 0, "create deploy rollingUpdate scale delete demand"},
		{"name", a.Name != "", "deploy rollingUpdate scale delete demand custom"},
	}
}

func (v *validator) deployShape(path string, a *Action) {
	v.onlyFor(path, a.Kind, append(a.workloadFields(v.s.recorded), field{"namespaceGroup", a.NamespaceGroup != "", "create apply"}))
	if a.AntiAffinity != "" {
		v.oneOf(path+".antiAffinity", a.AntiAffinity, "preferred", "required")
	}
	for i, t := range a.TopologySpread {
		at := fmt.Sprintf("%s.topologySpread[%d]", path, i)
		if t.Key == "" {
			v.fail(at+".key", "write key: topology.kubernetes.io/zone", "this topology spread has no key")
		} else if !v.s.recorded {
			v.spreadKey(at+".key", t.Key)
		}
		if slices.ContainsFunc(a.TopologySpread[:i], func(o TopologySpread) bool { return o.Key == t.Key }) && t.Key != "" {
			v.fail(at+".key", "name each key once", "%q appears twice", t.Key)
		}
		v.between(at+".maxSkew", float64(t.MaxSkew), 1, 1000)
	}
}

// spreadKey reports an error if no simulated node has the label over which pods are to be spread.
func (v *validator) spreadKey(path, key string) {
	known := v.s.Nodes.labels()
	if slices.Contains(known, key) || strings.HasPrefix(key, "stormglass.dev/") {
		return
	}
	hint := "nodes have the labels " + strings.Join(known, ", ")
	for _, label := range known {
		if strings.HasSuffix(label, "/"+key) {
			hint = fmt.Sprintf("did you mean %q?", label)
			break
		}
	}
	v.fail(path, strictyaml.Hint(key, known, hint), "no simulated node has the label %q", key)
}
