package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/strictyaml"
)

const maxRepeat = 1000

func (v *validator) fault(path string, p *Phase, f *Fault) {
	if !v.oneOf(path+".kind", f.Kind, slices.Concat(control.NodeFaultKinds(), control.FaultKinds())...) {
		return
	}
	if f.OfNodes() {
		v.nodeFault(path, f)
	} else {
		v.planeFault(path, f)
	}
	v.faultTimes(path, p, f)
}

func (v *validator) nodeFault(path string, f *Fault) {
	v.foreignToFault(path, f)
	if v.s.Nodes.Count == 0 {
		v.fail(path, "set nodes.count", "%s requires simulated nodes", f.Kind)
	}
	if f.Traits().OfCloud && v.s.ControlPlane.Count(control.KindCloudAPI) == 0 {
		v.fail(path, "set controlPlane: {cloudControllerManager: {replicas: 1}}", "%s requires the simulated cloud", f.Kind)
	}
	needs := f.Traits().Needs
	const hint = "greater than 0 and at most 1, for example 0.3"
	switch {
	case !slices.Contains(needs, "fraction"):
	case f.Fraction == 0 && v.s.doc != nil && !v.s.doc.Written(path+".fraction"):
		v.fail(path+".fraction", hint, "is missing")
	case f.Fraction <= 0 || f.Fraction > 1:
		v.fail(path+".fraction", hint, "%v is not a valid fraction of the nodes", f.Fraction)
	}
	if slices.Contains(needs, "delay") && f.Delay == 0 {
		v.fail(path+".delay", "write delay: 15s", "the fault %s has no delay", f.Kind)
	}
}

func (v *validator) foreignToFault(path string, f *Fault) {
	takers := func(field string, nodes bool) string {
		var all []string
		for _, k := range control.FaultTable() {
			if k.OfNodes == nodes && k.Has(field) {
				all = append(all, k.Name)
			}
		}
		return strings.Join(all, " ")
	}
	var times, others []field
	value := reflect.ValueOf(*f)
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("yaml"), ",")
		set := !value.Field(i).IsZero() && (value.Field(i).Kind() != reflect.Slice || value.Field(i).Len() > 0)
		of := takers(name, true)
		switch {
		case name == "kind" || name == "after": // fields of all faults
			continue
		case of == "" && f.OfNodes():
			of = strings.Join(control.FaultKinds(), " ")
		case !f.OfNodes() && (of == "" || takers(name, false) != ""):
			continue
		}
		if name == "for" || name == "repeat" || name == "every" {
			times = append(times, field{name, set, of})
		} else {
			others = append(others, field{name, set, of})
		}
	}
	v.onlyFor(path, f.Kind, slices.Concat(times, others))
}

// planeFault checks a fault with the same rules as the supervisor of the control plane.
func (v *validator) planeFault(path string, f *Fault) {
	before := len(v.errs)
	if f.Component != "" {
		v.component(path+".component", f.Component)
	}
	for i, name := range f.Components {
		v.component(fmt.Sprintf("%s.components[%d]", path, i), name)
	}
	for i, name := range f.Peers {
		v.component(fmt.Sprintf("%s.peers[%d]", path, i), name)
	}
	named := len(v.errs) == before
	v.foreignToFault(path, f)
	if f.Component != "" && len(f.Components) > 0 {
		v.fail(path+".components", "keep one of them", "component and components cannot be used together")
	}
	if f.Timeout.D()%time.Second != 0 {
		v.fail(path+".timeout", "whole seconds from 1s to 30s", "the API server does not accept a timeout of %s", f.Timeout)
	}
	if f.Traits().Has("resource") && f.Resource != "" {
		v.resource(path+".resource", f.Resource, "create")
	}
	if f.Limit < 0 {
		v.between(path+".limit", float64(f.Limit), 1, 1<<20)
	}
	asked := f.Control(v.s.Seed)
	problems := asked.ProblemsOn(v.s.ControlPlane)
	if v.s.recorded {
		problems = asked.Problems()
	}
	for _, p := range problems {
		at := path + "." + p.Path
		switch {
		case (p.Path == "components" || p.Path == "peers") && !named, p.Path == "to" && v.s.recorded: // the run may use versions that this program does not know
			continue
		case p.Path == "components" && len(f.Components) == 0:
			at = path + ".component"
		case p.Path == "kind" && f.Traits().Links:
			p.Hint = "leave out controlPlane.networkFaults, which is turned on automatically when a fault needs it"
		}
		v.fail(at, p.Hint, "%s", p.Msg)
	}
	if asked.Moves() && len(v.errs) == before && !v.s.recorded {
		v.move(path, f, asked)
	}
}

// move checks an upgrade or downgrade of the control plane, and applies it to v.plane for later checks.
func (v *validator) move(path string, f *Fault, asked control.Fault) {
	if f.Repeat > 1 {
		v.fail(path+".repeat", "leave it out", "repeating this fault has no effect, because the first time moves all components")
		return
	}
	from := v.s.ControlPlane
	if v.plane != nil {
		from = *v.plane
	}
	after, problem := asked.After(from)
	if problem != nil {
		v.fail(path+"."+problem.Path, problem.Hint, "%s", problem.Msg)
		return
	}
	if skew := after.KubeletSkew(v.s.NodesRelease()); v.s.Nodes.Count > 0 && skew != "" {
		v.fail(path+".to", "set nodes.version; upstream downgrades kubelets before API servers", "%s", skew)
	}
	v.plane = &after
}

// inOrder checks that the file lists upgrades and downgrades in the order in which they begin, because each starts from
// the versions that the previous one set.
func (v *validator) inOrder(path string, p *Phase, j int) {
	f := &p.Faults[j]
	for _, before := range p.Faults[:j] {
		if f.moves() && before.moves() && f.After < before.After {
			v.fail(path+".after", "list upgrades and downgrades in the order in which they begin", "it begins before the %s listed above it", before.Kind)
			return
		}
	}
}

func (v *validator) component(path, text string) {
	c := v.s.ControlPlane
	s, ok := control.ParseSelector(text)
	n := c.Count(s.Kind)
	switch {
	case !ok:
		known := c.Components()
		for _, kind := range control.Kinds() {
			known = append(known, kind)
			if control.KindOf(kind).Leads {
				known = append(known, kind+"-"+control.RoleLeader, kind+"-"+control.RoleFollower)
			}
		}
		v.fail(path, strictyaml.Hint(text, known, "one of "+strings.Join(known, ", ")), "unknown component %q", text)
	case n == 0:
		v.fail(path, "the setting controlPlane."+control.KindOf(s.Kind).Field+" adds one", "this control plane has no %s", s.Kind)
	case s.Role == control.RoleFollower && n == 1:
		v.fail(path, fmt.Sprintf("write %s: 3", countField(s.Kind)), "with only one %s there is no follower", s.Kind)
	case s.Name != "" && s.Index >= n:
		v.fail(path, fmt.Sprintf("%s is %d, so the last is %s", countField(s.Kind), n, control.ComponentName(s.Kind, n-1)), "this control plane has no %s", text)
	}
}

func countField(kind string) string { return "controlPlane." + control.KindOf(kind).Field }

func (v *validator) faultTimes(path string, p *Phase, f *Fault) {
	v.between(path+".repeat", float64(f.Repeat), 0, maxRepeat)
	switch {
	case f.Repeat > 1 && f.Every == 0:
		v.fail(path+".every", "write every: 10s", "repeat requires the field every")
		return
	case f.Repeat <= 1 && f.Every != 0:
		v.fail(path+".repeat", "write repeat: 20", "every requires the field repeat")
		return
	case f.Repeat > maxRepeat:
		return
	case f.Repeat > 1 && !f.Traits().Momentary && f.For == 0:
		v.fail(path+".for", "set for: to less than every:, so that one fault ends before the next begins", "a repeated fault requires a length")
	case f.Repeat > 1 && !f.Traits().Momentary && f.For >= f.Every:
		v.fail(path+".for", "set for: to less than every:", "the fault lasts %s, but the next one begins after %s", f.For, f.Every)
	}
	length, what := p.lasts()
	span, times := f.Span(), f.Times()
	last := times[len(times)-1]
	if length <= 0 || last < length && span <= length {
		return
	}
	longer := "make the phase longer than " + Duration(span).String()
	if span > maxPhase-time.Second {
		longer = "a phase can last at most 24h"
	}
	if last >= length {
		v.fail(path, longer+", or start the fault before the phase ends", "%s begins %s after the start of phase %q, but %s %s", f.Kind, Duration(last), p.Name, what, Duration(length))
		return
	}
	v.fail(path, longer+", or shorten the fault", "%s ends %s after the start of phase %q, but %s %s", f.Kind, Duration(span), p.Name, what, Duration(length))
}
