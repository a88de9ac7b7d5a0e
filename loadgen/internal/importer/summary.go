package importer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Row compares a property of one part of the configuration, such as a job, with the scenario.
type Row struct{ Part, What, Original, Scenario string }

// part describes what a job, a step or the whole test does, either in the configuration or in the scenario.
type part struct {
	name                                string
	from, to                            int // range of phases
	objects                             map[string]int
	namespaces                          int
	rates, waits, actions, measurements []string // not sorted
	gates, figures                      map[string]bool
}

func newPart(name string, from int) *part {
	return &part{name: name, from: from, objects: map[string]int{}, gates: map[string]bool{}, figures: map[string]bool{}}
}

// ask records the name of a gate of the configuration or, unless `judged` is set, of a figure (a compared metric).
func (p *part) ask(judged bool, name string) {
	if judged {
		p.gates[name] = true
	} else {
		p.figures[name] = true
	}
}

// part begins a new part of the configuration, which contains the phases that are added from now on.
func (d *draft) part(name string) *part {
	p := newPart(name, len(d.phases))
	d.parts = append(d.parts, p)
	return p
}

// cells returns the properties of a part in the order of the table.
func (p *part) cells() [][2]string {
	var objects []string
	for _, kind := range sortedKeys(p.objects) {
		objects = append(objects, fmt.Sprintf("%d %s", p.objects[kind], kind))
	}
	list := func(all []string) string { return strings.Join(distinct(all), ", ") }
	number := func(n int) string { return strings.TrimPrefix(fmt.Sprint(n), "0") }
	return [][2]string{
		{"objects", strings.Join(objects, ", ")}, {"namespaces", number(p.namespaces)}, {"rate", list(p.rates)}, {"waits for", list(p.waits)},
		{"actions", list(p.actions)}, {"measurements", list(p.measurements)}, {"gates", number(len(p.gates))}, {"figures", number(len(p.figures))},
	}
}

// summary compares the parts of the configuration with the phases of the scenario, and all measurements and gates.
func (d *draft) summary(s *plan.Plan) (rows []Row) {
	for _, p := range d.parts {
		is := phasesOf(s, s.Phases[p.from:p.to])
		if p == d.all {
			is = d.measured(s)
		}
		has := is.cells()
		for i, cell := range p.cells() {
			if r := (Row{p.name, cell[0], cmp.Or(cell[1], "none"), cmp.Or(has[i][1], "none")}); r.Original != r.Scenario || cell[1] != "" {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// These match the resource in a wait condition that an import wrote. waitedGone matches the condition that no object is
// left. waitedFor matches all other conditions.
var (
	waitedGone = regexp.MustCompile(`count\(([a-z][a-z0-9.]*)(?: where (?:[^()]|\([^()]*\))*)?\) == 0`)
	waitedFor  = regexp.MustCompile(`([a-z][a-z0-9.]*)\.(?:all|size)\(|count\(([a-z][a-z0-9.]*)`)
)

// phasesOf describes phases of the scenario.
func phasesOf(s *plan.Plan, phases []scenario.Phase) *part {
	p := newPart("", 0)
	for i := range phases {
		phase := &phases[i]
		for _, a := range phase.Actions {
			if a.Target.Resource != "" {
				p.actions = append(p.actions, a.Kind+" "+a.Target.Resource)
			}
		}
		for _, l := range phase.Load {
			switch {
			case l.Kind == "watches":
				p.actions = append(p.actions, "watch "+l.Resource)
				continue
			case l.Kind == "requests":
				p.actions = append(p.actions, l.Verb+" "+l.Resource)
			}
			p.rates = append(p.rates, rateText(float64(l.Rate), l.Shape.Burst, l.Shape.Every.String()))
		}
		for _, b := range s.Batches {
			if b.Phase != phase.Name || b.Verbs == "create list" {
				continue
			}
			if b.Verbs != "create" {
				p.actions = append(p.actions, "apply")
				continue
			}
			p.namespaces = max(p.namespaces, b.Namespaces)
			for _, k := range b.Expanded.Kinds() {
				p.objects[k.Kind] += k.Count
			}
		}
		for _, m := range waitedGone.FindAllStringSubmatch(phase.Until.Text, -1) {
			p.waits = append(p.waits, "no "+m[1])
		}
		for _, m := range waitedFor.FindAllStringSubmatch(waitedGone.ReplaceAllString(phase.Until.Text, ""), -1) {
			p.waits = append(p.waits, m[1]+m[2])
		}
	}
	return p
}

// rateText formats the rate of a load, or its bursts.
func rateText(rate float64, burst int, every string) string {
	if burst > 0 {
		return fmt.Sprintf("%d every %s", burst, every)
	}
	return scenario.Rate(rate).String()
}

// measured describes the scenario's measurements, gates and compared metrics (the field `compare`).
func (d *draft) measured(s *plan.Plan) *part {
	p := phasesOf(s, s.Phases[d.all.from:d.all.to])
	key := func(expr, name string) string {
		if expr == "" || !d.perJob {
			return name
		}
		return expr
	}
	for _, g := range s.Gates {
		if g.Objective != "achieved" { // this objective only verifies that a load created its objects
			p.gates[key(g.Expr, g.Name)] = true
		}
	}
	for _, f := range s.Compare {
		p.figures[key(f.Expr, f.Name)] = true
	}
	for measurement, all := range burnTransitions {
		if !slices.ContainsFunc(all, func(t burnTransition) bool {
			return !slices.ContainsFunc(s.Transitions, func(own scenario.Transition) bool { return own.Name == t.name })
		}) {
			p.measurements = append(p.measurements, measurement)
		}
	}
	if slices.ContainsFunc(s.Phases, func(p scenario.Phase) bool { return len(p.Profiles) > 0 }) {
		p.measurements = append(p.measurements, "pprof")
	}
	return p
}
