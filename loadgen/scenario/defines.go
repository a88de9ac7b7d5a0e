package scenario

import (
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// MayDefine reports whether objects of the scenario's phases may define a custom resource, such as things.example.com.
// The objects of hooks, templates and loads of kind "objects" are not known in advance. They may define any resource of
// a group that is not built into Kubernetes.
func (s *Scenario) MayDefine(resource string) bool {
	if !strings.Contains(builtin.GroupOf(resource), ".") {
		return false // custom resources are never in such a group
	}
	hidden := slices.ContainsFunc(s.Background, func(l Load) bool { return l.Kind == "objects" })
	for i := range s.Phases {
		p := &s.Phases[i]
		for _, m := range p.Manifests() {
			if m.Defines() && slices.ContainsFunc(m.Objects(), func(o Manifest) bool { return o.Name == resource }) {
				return true
			}
		}
		hidden = hidden || len(p.Before)+len(p.After) > 0 ||
			slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Has() || a.Kind == "custom" }) ||
			slices.ContainsFunc(p.Load, func(l Load) bool { return l.Kind == "objects" })
	}
	return hidden && builtin.IsCustom(resource)
}
