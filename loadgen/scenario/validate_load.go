package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Manifests are the resources that Stormglass can make objects of without
// being given one.
var Manifests = []string{
	"configmaps", "secrets", "services", "serviceaccounts", "pods", "leases.coordination.k8s.io", WidgetResource,
}

// WidgetResource is the custom resource made for a run that uses it.
const WidgetResource = "widgets.load.stormglass.dev"

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

// load checks one load; watches are those that changes may be for, nil in the
// background.
func (v *validator) load(path string, l *Load, watches map[string]*Load) {
	if !v.oneOf(path+".kind", l.Kind, "requests", "watches", "changes", "history") {
		return
	}
	v.name(path+".name", l.Name)
	v.rate(path, l)
	v.between(path+".maxInFlight", float64(l.MaxInFlight), 1, 100_000)
	v.between(path+".connections", float64(l.Connections), 1, 1000)
	if d := l.Timeout.D(); !v.s.recorded && (d < minTimeout || d > maxPhase) {
		v.fail(path+".timeout", fmt.Sprintf("from %s to 24h", Duration(minTimeout)), "%s is out of bounds", l.Timeout)
	}
	v.foreignFields(path, l)
	v.objects(path, l)
	switch l.Kind {
	case "requests":
		v.requests(path, l)
	case "watches":
		v.watches(path, l)
		if watches == nil {
			v.fail(path+".kind", "open watches in a phase, with hold: true", "watches cannot run in the background")
		}
	case "history":
		v.history(path, l)
	case "changes":
		if watches == nil {
			v.fail(path+".kind", "write changes in a phase", "changes cannot run in the background")
		} else if w := watches[l.Watches]; w == nil {
			v.fail(path+".watches", "name a watches load of this phase, or one held from an earlier phase", "no watches %q are open here", l.Watches)
		} else if !w.OwnObjects(w.Operation) {
			v.fail(path+".watches", "give them an object, or let them watch "+strings.Join(Manifests[:3], ", "), "watches %q have no objects of their own to change", l.Watches)
		}
	}
}

// minTimeout is less than any request takes that is of use.
const minTimeout = time.Millisecond

// objects checks the objects a load makes.
func (v *validator) objects(path string, l *Load) {
	v.between(path+".objects", float64(l.Objects), 1, 100_000)
	v.between(path+".namespaces", float64(l.Namespaces), 1, 1000)
	v.oneOf(path+".spread", l.Spread, "even", "zipf")
	if len(l.Sizes) == 0 {
		v.between(path+".size", float64(l.Size), 1, 1<<20)
	}
	for i, s := range l.Sizes {
		v.between(fmt.Sprintf("%s.sizes[%d].size", path, i), float64(s.Size), 1, 1<<20)
		v.weight(fmt.Sprintf("%s.sizes[%d].weight", path, i), s.Weight)
	}
	if len(l.Sizes) > 0 && l.Size != 0 && !v.s.recorded { // an earlier version wrote both
		v.fail(path+".size", "keep one of them", "both size and sizes")
	}
	if l.Kind != "requests" && l.Kind != "watches" {
		return // makes no objects of a resource of its choice
	}
	if l.Object != nil {
		v.manifest(path, l)
	}
	v.payloads(path, l)
}

func (v *validator) weight(path string, w float64) {
	if !(w > 0) || w > 1e6 {
		v.fail(path, "over 0, as 1 or 0.5", "%v is no weight", w)
	}
}

func (v *validator) watches(path string, l *Load) {
	v.between(path+".count", float64(l.Count), 1, MaxWatches)
	v.oneOf(path+".connect", l.Connect, "shared", "each")
	v.oneOf(path+".start", l.Start, "list", "watchList")
	v.answer(path, l, &l.Operation)
	if l.Form == "table" {
		v.fail(path+".form", "object or metadata", "watches of tables are not measured")
	}
	v.between(path+".slow.fraction", l.Slow.Fraction, 0, 1)
	if l.Slow.Fraction > 0 {
		v.between(path+".slow.window", float64(l.Slow.Window), 1, 1<<30)
	} else if l.Slow.Fraction == 0 && l.Slow != (SlowWatches{}) {
		v.fail(path+".slow", "add fraction: 0.1", "no watch is slow")
	}
}

// field is one that only some kinds take.
type field struct {
	name string
	set  bool
	of   string // the kinds, apart by spaces
}

// onlyFor refuses fields that belong to another kind: silently ignored, they
// would make a person believe in something that is not there.
func (v *validator) onlyFor(path, kind string, all []field) {
	for _, f := range all {
		if f.set && !slices.Contains(strings.Fields(f.of), kind) {
			v.fail(path+"."+f.name, "it belongs to "+strings.ReplaceAll(f.of, " ", ", "), "does nothing in %s", orNone(kind))
		}
	}
}

func orNone(kind string) string {
	if kind == "" {
		return "a steady rate"
	}
	return kind
}

// objectful are the kinds that make objects of their own; changes write those of
// the watches that they name.
const objectful = "requests watches"

func (v *validator) foreignFields(path string, l *Load) {
	if len(l.Mix) > 0 && l.Kind == "requests" && l.Operation != (Operation{}) {
		v.fail(path+".mix", "put verb, resource and the like into its items", "a load with a mix has no operation beside it")
	}
	v.onlyFor(path, l.Kind, []field{
		{"verb", l.Verb != "", "requests"}, {"mix", len(l.Mix) > 0, "requests"}, {"tenants", len(l.Tenants) > 0, "requests"},
		{"limit", l.Limit != 0 && l.Kind != "requests", "requests"}, {"allPages", l.AllPages && l.Kind != "requests", "requests"},
		{"resourceVersion", l.ResourceVersion != "" && l.Kind != "requests", "requests"},
		{"count", l.Count != 0, "watches"}, {"hold", l.Hold, "watches"}, {"connect", l.Connect != "", "watches"},
		{"start", l.Start != "", "watches"}, {"slow", l.Slow != (SlowWatches{}), "watches"},
		{"watches", l.Watches != "", "changes"},
		{"clients", l.Clients != 0, "history"}, {"watchers", l.Watchers != 0, "history"},
		// These have defaults, which are filled in for all kinds and stand in the scenario.yaml of every run.
		{"objects", l.Objects != defaultObjects && l.Kind == "changes", objectful + " history"},
		{"namespaces", l.Namespaces != defaultNamespaces, objectful}, {"spread", l.Spread != defaultSpread, objectful},
		{"size", l.Size != defaultSize && l.Size != 0, objectful}, {"sizes", len(l.Sizes) > 0, objectful}, {"object", l.Object != nil, objectful},
	})
	if l.Kind == "changes" && l.Operation != (Operation{}) {
		v.fail(path, "leave resource and the like to the watches", "changes patch what their watches watch")
	}
	if l.Kind == "history" && l.Operation != (Operation{}) {
		v.fail(path, "leave verb, resource and the like out", "a history reads and writes registers of its own")
	}
	if l.Weight != 0 {
		v.fail(path+".weight", "it belongs to the items of a mix", "does nothing in a load")
	}
}
