package scenario

import (
	"fmt"
	"maps"
	"strings"
)

// loadsOf checks the loads of one phase. held are the watches that earlier
// phases left open, which this phase's changes may refer to; names are those
// of all loads so far. A load's objects carry its name, so names are told
// apart over the whole run.
func (v *validator) loadsOf(path string, p *Phase, held map[string]*Load, names map[string]bool) {
	watches := maps.Clone(held)
	for j := range p.Load {
		l := &p.Load[j]
		v.uniqueLoad(fmt.Sprintf("%s.load[%d]", path, j), l, names)
		if l.Kind == "watches" {
			watches[l.Name] = l
			if l.Hold {
				held[l.Name] = l
			}
		}
	}
	for j := range p.Load {
		v.load(fmt.Sprintf("%s.load[%d]", path, j), &p.Load[j], watches)
	}
	if p.Until == "watchesOpen" && len(watches) == 0 {
		v.fail(path+".until", "add load: [{kind: watches, count: 100, rate: 50/s}]", "phase %q opens no watches", p.Name)
	}
}

func (v *validator) uniqueLoad(path string, l *Load, names map[string]bool) {
	v.unique(path, "load", l.Name, "give each load of the run a name of its own", names)
}

func (v *validator) load(path string, l *Load, watches map[string]*Load) {
	if !v.oneOf(path+".kind", l.Kind, "requests", "watches", "changes") {
		return
	}
	v.name(path+".name", l.Name)
	if l.Rate == 0 {
		v.fail(path+".rate", "write rate: 50/s", "load %q has no rate", l.Name)
	} else if l.Rate > MaxRate {
		v.fail(path+".rate", fmt.Sprintf("at most %d/s", MaxRate), "%s is more than one machine can send", l.Rate)
	}
	v.oneOf(path+".arrival", l.Arrival, "constant", "poisson")
	v.between(path+".maxInFlight", float64(l.MaxInFlight), 1, 100_000)
	v.between(path+".objects", float64(l.Objects), 1, 100_000)
	v.between(path+".size", float64(l.Size), 1, 1<<20)
	v.between(path+".limit", float64(l.Limit), 0, 100_000)
	v.foreignFields(path, l)
	switch l.Kind {
	case "requests":
		v.requests(path, l)
	case "watches":
		v.between(path+".count", float64(l.Count), 1, MaxWatches)
		if l.Resource != "configmaps" {
			v.fail(path+".resource", "watches are measured on configmaps", "cannot watch %q", l.Resource)
		}
		if watches == nil {
			v.fail(path+".kind", "open watches in a phase, with hold: true", "watches cannot run in the background")
		}
	case "changes":
		if watches == nil {
			v.fail(path+".kind", "write changes in a phase", "changes cannot run in the background")
		} else if watches[l.Watches] == nil {
			v.fail(path+".watches", "name a watches load of this phase, or one held from an earlier phase", "no watches %q are open here", l.Watches)
		}
	}
}

func (v *validator) requests(path string, l *Load) {
	if !v.oneOf(path+".verb", l.Verb, "get", "list", "create", "update", "patch", "delete") {
		return
	}
	if l.Resource != "configmaps" && l.Verb != "get" && l.Verb != "list" {
		v.fail(path+".resource", "verbs that write take configmaps", "cannot %s %q", l.Verb, l.Resource)
	}
	if strings.Trim(l.Resource, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		v.fail(path+".resource", "as configmaps or deployments.apps", "%q is not a resource", l.Resource)
	}
	if l.ResourceVersion != "" && l.ResourceVersion != "0" {
		v.fail(path+".resourceVersion", `"" or "0"`, "unknown value %q", l.ResourceVersion)
	}
	if l.ResourceVersion != "" && l.Verb != "get" && l.Verb != "list" {
		v.fail(path+".resourceVersion", "it belongs to get and list", "a %s has none", l.Verb)
	}
	if l.Limit != 0 && l.Verb != "list" {
		v.fail(path+".limit", "it belongs to list", "a %s has no limit", l.Verb)
	}
}

// foreignFields refuses fields that belong to another kind of load: silently
// ignored, they would make a person believe in a load that is not there.
func (v *validator) foreignFields(path string, l *Load) {
	set := map[string]bool{
		"verb": l.Verb != "", "limit": l.Limit != 0, "resourceVersion": l.ResourceVersion != "",
		"count": l.Count != 0, "hold": l.Hold, "watches": l.Watches != "",
	}
	owner := map[string]string{
		"verb": "requests", "limit": "requests", "resourceVersion": "requests",
		"count": "watches", "hold": "watches", "watches": "changes",
	}
	for _, field := range []string{"verb", "limit", "resourceVersion", "count", "hold", "watches"} {
		if set[field] && owner[field] != l.Kind {
			v.fail(path+"."+field, "it belongs to kind: "+owner[field], "does nothing in kind: %s", l.Kind)
		}
	}
}

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
		for j, name := range g.Over {
			if v.s.Phase(name) == nil {
				v.fail(fmt.Sprintf("%s.over[%d]", path, j), "phases: "+strings.Join(v.s.PhaseNames(), ", "), "no phase %q", name)
			}
		}
	}
}
