package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Manifests are the resources that Stormglass can make objects of without being given one.
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
		if l.OpensWatches() {
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
		v.fail(path+".until", "add load: "+watchesExample, "phase %q opens no watches", p.Name)
	}
}

func (v *validator) uniqueLoad(path string, l *Load, names map[string]bool) {
	v.unique(path, "load", l.Name, "give each load of the run a name of its own", names)
}

// load checks one load; watches are those that changes may be for, nil in the background.
func (v *validator) load(path string, l *Load, watches map[string]*Load) {
	if !v.oneOf(path+".kind", l.Kind, LoadKinds()...) {
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
	l.kind().validate(v, path, l, watches)
}

// minTimeout is less than any request takes that is of use.
const minTimeout = time.Millisecond

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
	if !l.kind().manifests {
		return
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

func (v *validator) foreignFields(path string, l *Load) {
	var all []field
	for _, k := range loadKinds() {
		for _, f := range k.fields(l) {
			i := slices.IndexFunc(all, func(o field) bool { return o.name == f.name })
			if i < 0 {
				i, all = len(all), append(all, f)
			}
			all[i].of = strings.TrimSpace(all[i].of + " " + k.name)
		}
	}
	kind := l.kind()
	mixes := slices.Contains(kind.fields(l), field{name: "mix", set: true})
	if mixes && l.Operation != (Operation{}) {
		v.fail(path+".mix", "put verb, resource and the like into its items", "a load with a mix has no operation beside it")
	}
	objects := loadKindsThat(func(k loadKind) bool { return k.objects > 0 })
	manifests := strings.Join(loadKindsThat(func(k loadKind) bool { return k.manifests }), " ")
	v.onlyFor(path, l.Kind, append(all,
		// These have defaults, which are filled in for all kinds and stand in the scenario.yaml of every run.
		field{"objects", l.Objects != defaultObjects, strings.Join(objects, " ")},
		field{"namespaces", l.Namespaces != defaultNamespaces, manifests}, field{"spread", l.Spread != defaultSpread, manifests},
		field{"size", l.Size != defaultSize && l.Size != 0, manifests}, field{"sizes", len(l.Sizes) > 0, manifests}, field{"object", l.Object != nil, manifests},
	))
	if refused := kind.fixed; refused != nil && l.Operation != (Operation{}) {
		v.fail(path, refused.hint, "%s", refused.why)
	}
	if l.Weight != 0 {
		v.fail(path+".weight", "it belongs to the items of a mix", "does nothing in a load")
	}
}
