package run

import (
	"maps"
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
)

// moves records the version changes (upgrades and downgrades) of a control plane's components during a run.
type moves struct {
	now map[string]string // current version of each component, by name
	all []result.VersionMove
}

// followMoves returns a record of version changes that is still empty. versions has the version with which each component
// starts, by component name.
func followMoves(versions map[string]string) moves { return moves{now: maps.Clone(versions)} }

// started records that a component was started with a version. It ignores components whose first version is unknown.
func (m *moves) started(component, version string) {
	was, known := m.now[component]
	if !known || version == "" || was == version {
		return
	}
	m.now[component] = version
	of := partOf(component)
	for i, last := range slices.Backward(m.all) {
		if last.Of != of {
			continue
		}
		if last.Version == version {
			m.all[i].On = append(m.all[i].On, component)
			return
		}
		break
	}
	m.all = append(m.all, result.VersionMove{Of: of, Version: version, On: []string{component}})
}

func partOf(component string) string {
	if control.ComponentKind(component) == control.KindEtcd {
		return control.KindEtcd
	}
	return "kubernetes"
}

// list returns the version changes in order. A change lists the components that changed. It lists only their kind if
// all components of the kind changed, and nothing if all components of the product (etcd or Kubernetes) changed.
func (m *moves) list() (all []result.VersionMove) {
	for _, move := range m.all {
		whole := func(same func(string) string, name string) bool {
			for other := range m.now {
				if same(other) == same(name) && !slices.Contains(move.On, other) {
					return false
				}
			}
			return true
		}
		var on []string
		for _, name := range move.On {
			if whole(partOf, name) {
				break
			}
			if whole(control.ComponentKind, name) {
				name = control.ComponentKind(name)
			}
			if !slices.Contains(on, name) {
				on = append(on, name)
			}
		}
		all = append(all, result.VersionMove{Of: move.Of, Version: move.Version, On: on})
	}
	return all
}
