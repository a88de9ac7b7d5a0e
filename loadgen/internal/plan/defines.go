package plan

import (
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// MayDefine reports whether objects of the scenario's phases may define a custom resource, such as things.example.com.
// The objects of hooks, templates and loads of kind "objects" are not known in advance. They may define any resource of
// a group that is not built into Kubernetes.
func (p *Plan) MayDefine(resource string) bool {
	if !strings.Contains(builtin.GroupOf(resource), ".") {
		return false // custom resources are never in such a group
	}
	hidden := slices.ContainsFunc(p.Background, func(l scenario.Load) bool { return l.Kind == "objects" })
	for i := range p.Phases {
		phase := &p.Phases[i]
		for _, m := range phase.Manifests() {
			if m.Defines() && slices.ContainsFunc(m.Objects(), func(o scenario.Manifest) bool { return o.Name == resource }) {
				return true
			}
		}
		hidden = hidden || len(phase.Before)+len(phase.After) > 0 ||
			slices.ContainsFunc(phase.Actions, func(a scenario.Action) bool { return a.Has() || a.Kind == "custom" }) ||
			slices.ContainsFunc(phase.Load, func(l scenario.Load) bool { return l.Kind == "objects" })
	}
	return hidden && builtin.IsCustom(resource)
}
