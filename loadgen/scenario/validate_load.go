package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
)

// Manifests lists the resources for which Stormglass has a built-in manifest, so that a load needs none.
var Manifests = []string{
	"configmaps", "secrets", "services", "serviceaccounts", "pods", "leases.coordination.k8s.io", WidgetResource,
}

// WidgetResource is a custom resource of Stormglass. A run that uses this resource creates the definition.
const WidgetResource = "widgets.load.stormglass.dev"

// loadsOf checks the loads of one phase. `held` holds the watches that earlier phases left open, to which a load of
// changes may refer. names holds the names of all loads so far. Names must be unique in the run, because they label the
// objects of the load.
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
	if p.Until.Is("watchesOpen") && len(watches) == 0 {
		v.fail(path+".until", "add load: "+watchesExample, "phase %q opens no watches", p.Name)
	}
}

func (v *validator) uniqueLoad(path string, l *Load, names map[string]bool) {
	v.unique(path, "load", l.Name, "give each load of the run a unique name", names)
}

// load checks one load. watches holds the watches to which a load of changes may refer; nil for background loads.
func (v *validator) load(path string, l *Load, watches map[string]*Load) {
	if !v.oneOf(path+".kind", l.Kind, LoadKinds()...) {
		return
	}
	v.name(path+".name", l.Name)
	v.rate(path, l)
	v.minAchieved(path+".minAchieved", l.MinAchieved)
	v.between(path+".maxInFlight", float64(l.MaxInFlight), 1, 100_000)
	v.between(path+".connections", float64(l.Connections), 1, 1000)
	if d := l.Timeout.D(); !v.s.recorded && (d < minTimeout || d > maxPhase) {
		v.fail(path+".timeout", fmt.Sprintf("from %s to 24h", Duration(minTimeout)), "%s is out of bounds", l.Timeout)
	}
	v.foreignFields(path, l)
	v.objects(path, l)
	l.kind().validate(v, path, l, watches)
}

// minTimeout is the minimum timeout of a request or hook. Useful work takes longer.
const minTimeout = time.Millisecond

func (v *validator) objects(path string, l *Load) {
	v.between(path+".objects", float64(l.Objects), 1, 100_000)
	if !l.Batch().Has() {
		v.between(path+".namespaces", float64(l.Namespaces), 1, 1000)
	}
	v.oneOf(path+".spread", l.Spread, "even", "zipf")
	if len(l.Sizes) == 0 {
		v.between(path+".size", float64(l.Size), 1, 1<<20)
	}
	for i, s := range l.Sizes {
		v.between(fmt.Sprintf("%s.sizes[%d].size", path, i), float64(s.Size), 1, 1<<20)
		v.weight(fmt.Sprintf("%s.sizes[%d].weight", path, i), s.Weight)
	}
	if len(l.Sizes) > 0 && l.Size != 0 && !v.s.recorded { // an earlier version of Stormglass wrote both
		v.fail(path+".size", "remove one of them", "size and sizes cannot be used together")
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
		v.fail(path, "greater than 0, for example 1 or 0.5", "%v is not a valid weight", w)
	}
}

// field is a scenario field that only some kinds of load, action, fault or shape accept.
type field struct {
	name string
	set  bool
	of   string // the kinds that accept the field, separated by spaces
}

// onlyFor reports an error for each field that is set but that the kind does not accept. Without the error, the author
// would believe that the field has an effect.
func (v *validator) onlyFor(path, kind string, all []field) {
	for _, f := range all {
		if f.set && !slices.Contains(strings.Fields(f.of), kind) {
			v.fail(path+"."+f.name, "it applies only to "+strings.ReplaceAll(f.of, " ", ", "), "this field has no effect in %s", cmp.Or(kind, "a load with a steady rate"))
		}
	}
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
		v.fail(path+".mix", "move verb, resource and similar fields into the items of the mix", "a load with a mix cannot also have its own verb or resource")
	}
	objects := loadKindsThat(func(k loadKind) bool { return k.objects > 0 })
	manifests := strings.Join(loadKindsThat(func(k loadKind) bool { return k.manifests }), " ")
	namespaces := strings.Join(loadKindsThat(func(k loadKind) bool { return k.manifests || k.namespaces }), " ")
	v.onlyFor(path, l.Kind, append(all,
		// Do not report the default values of these fields: all kinds have them, and the scenario.yaml of every run
		// contains them.
		field{"objects", l.Objects != defaultObjects, strings.Join(objects, " ")},
		field{"namespaces", l.Namespaces != defaultNamespaces, namespaces}, field{"spread", l.Spread != defaultSpread, manifests},
		field{"size", l.Size != defaultSize && l.Size != 0, manifests}, field{"sizes", len(l.Sizes) > 0, manifests}, field{"object", l.Object != nil, manifests},
	))
	if refused := kind.fixed; refused != nil && l.Operation != (Operation{}) {
		v.fail(path, refused.hint, "%s", refused.why)
	}
	if l.Weight != 0 {
		v.fail(path+".weight", "only items of a mix have this field", "this field has no effect in a load")
	}
}

func (v *validator) rate(path string, l *Load) {
	switch {
	case l.kind().recorded && (l.Rate != 0 || l.Shape.Kind != ""):
		v.fail(path, "leave out rate and shape", "a replay has the rate of its recording")
	case l.kind().recorded:
	case l.Shape.Kind == "replay" && l.Rate != 0:
		v.fail(path+".rate", "leave it out", "a replay has the rate of its file")
	case l.Shape.Kind == "replay", l.Shape.Kind == "burst", l.Shape.Kind == "ramp", l.Shape.Kind == "step":
	case l.Rate == 0:
		v.fail(path+".rate", "write rate: 50/s", "load %q has no rate", l.Name)
	}
	for field, rate := range map[string]Rate{"rate": l.Rate, "shape.to": l.Shape.EndRate()} {
		if rate > MaxRate {
			v.fail(path+"."+field, fmt.Sprintf("at most %d/s", MaxRate), "%s is too high: one machine cannot send this many requests", rate)
		}
	}
	v.oneOf(path+".arrival", l.Arrival, "constant", "poisson")
	v.shape(path+".shape", l)
}

func (v *validator) shape(path string, l *Load) {
	s := &l.Shape
	if s.Kind != "" && !v.oneOf(path+".kind", s.Kind, "ramp", "step", "burst", "sine", "replay") {
		return
	}
	v.onlyFor(path, s.Kind, []field{
		{"to", s.To != nil, "ramp step"}, {"over", s.Over != 0, "ramp"}, {"steps", s.Steps != 0, "step"},
		{"every", s.Every != 0, "step burst sine"}, {"burst", s.Burst != 0, "burst"},
		{"amplitude", s.Amplitude != 0, "sine"}, {"file", s.File != "", "replay"}, {"speed", s.Speed != 0, "replay"},
	})
	switch {
	case s.Kind == "replay" && s.File == "":
		v.fail(path+".file", "write file: arrivals.txt", "the replay has no file")
	case (s.Kind == "ramp" || s.Kind == "step") && s.To == nil:
		v.fail(path+".to", "write to: 500/s, or to: 0/s for a final rate of zero", "the %s has no final rate", s.Kind)
	case (s.Kind == "ramp" || s.Kind == "step") && l.Rate == 0 && *s.To == 0:
		v.fail(path+".to", "write to: 500/s", "a load from 0/s to 0/s sends nothing")
	case s.Burst > MaxRate:
		v.between(path+".burst", float64(s.Burst), 1, MaxRate)
	case s.Kind == "burst" && s.Every > 0 && s.Every.D() < minEvery:
		v.fail(path+".every", fmt.Sprintf("at least %s", Duration(minEvery)), "%s is too short for the interval between bursts", s.Every)
	case s.Kind == "burst" && s.Every > 0 && float64(s.Burst)/s.Every.D().Seconds() > MaxRate:
		v.fail(path+".burst", fmt.Sprintf("at most %d every %s", int64(MaxRate*s.Every.D().Seconds()), s.Every), "%d every %s is too much: one machine cannot send this many requests", s.Burst, s.Every)
	case s.Kind == "sine" && !v.s.recorded && s.Amplitude <= 1 && float64(l.Rate)*(1+s.Amplitude) > MaxRate:
		v.fail(strings.TrimSuffix(path, ".shape")+".rate", fmt.Sprintf("at most %d/s", int(MaxRate/(1+s.Amplitude))), "the sine's maximum of %s is too high: one machine cannot send this many requests", l.Rate*Rate(1+s.Amplitude))
	case s.Steps > maxSteps:
		v.between(path+".steps", float64(s.Steps), 1, maxSteps)
	default:
		if _, err := arrival.NewShaped("constant", min(float64(l.Rate), MaxRate), s.Pace(), 0); err != nil && s.EndRate() <= MaxRate {
			msg, hint, _ := strings.Cut(err.Error(), "; ")
			v.fail(path, hint, "%s", msg)
		}
	}
}

const (
	maxSteps = 10_000
	// minEvery is the shortest time between bursts.
	minEvery = 10 * time.Millisecond
)

// EndRate returns the final rate of a ramp or step, or 0 for another shape.
func (s Shape) EndRate() Rate {
	if s.To == nil {
		return 0
	}
	return *s.To
}

// Pace converts the shape to the type of package arrival.
func (s Shape) Pace() arrival.Shape {
	return arrival.Shape{
		Kind: s.Kind, To: float64(s.EndRate()), Over: s.Over.D(), Steps: s.Steps, Every: s.Every.D(),
		Burst: s.Burst, Amplitude: s.Amplitude, Times: s.Times, Speed: s.Speed,
	}
}
