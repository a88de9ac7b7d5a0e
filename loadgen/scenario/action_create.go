package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// creatable are the resources of the objects that actions create, in the order in which
// they are removed. None has a namespace.
var creatable = []string{
	"flowschemas.flowcontrol.apiserver.k8s.io",
	"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
	"priorityclasses.scheduling.k8s.io",
}

// Creatable is a kind of object that actions create.
type Creatable struct {
	Resource schema.GroupVersionResource
	Kind     string
}

// Creatables are the kinds of the objects that actions create, in the order in which they
// are removed.
func Creatables() []Creatable {
	var all []Creatable
	for _, name := range creatable {
		of := builtIns()[name]
		plural, group, _ := strings.Cut(name, ".")
		version := strings.TrimPrefix(of.versions[0], group+"/")
		all = append(all, Creatable{schema.GroupVersionResource{Group: group, Version: version, Resource: plural}, of.kind})
	}
	return all
}

// upstreamObjects are the names of those that every API server has itself: bootstrap of
// k8s.io/apiserver/pkg/apis/flowcontrol, SystemPriorityClasses of
// k8s.io/kubernetes/pkg/apis/scheduling/v1.
var upstreamObjects = map[string][]string{
	"FlowSchema": {
		"exempt", "probes", "system-leader-election", "system-node-high", "system-nodes", "kube-controller-manager", "kube-scheduler",
		"kube-system-service-accounts", "service-accounts", "global-default", "catch-all",
	},
	"PriorityLevelConfiguration": {
		"exempt", "system", "node-high", "leader-election", "workload-high", "workload-low", "global-default", "catch-all",
	},
	"PriorityClass": {"system-node-critical", "system-cluster-critical"},
}

// Manifest is an object that an action creates.
type Manifest struct {
	Creatable
	Name   string
	Object map[string]any
}

// String is the kind and the name.
func (m Manifest) String() string { return m.Kind + " " + m.Name }

// Manifest of a create. Its Kind is "" if no action may create such an object.
func (a Action) Manifest() Manifest {
	m := Manifest{}
	m.Object, _ = a.Object.(map[string]any)
	meta, _ := m.Object["metadata"].(map[string]any)
	m.Name, _ = meta["name"].(string)
	for _, c := range Creatables() {
		if m.Object["kind"] == c.Kind && m.Object["apiVersion"] == c.Resource.GroupVersion().String() {
			m.Creatable = c
		}
	}
	return m
}

// Manifests are the objects that actions create, in their order.
func (s *Scenario) Manifests() []Manifest {
	var all []Manifest
	for _, p := range s.Phases {
		for _, a := range p.Actions {
			if a.Kind == "create" {
				all = append(all, a.Manifest())
			}
		}
	}
	return all
}

// creation checks a create; created are the objects of those before it.
func (v *validator) creation(path string, a *Action, created map[string]bool) {
	path += ".object"
	object, ok := v.manifestFields(path, a.Object)
	if !ok {
		return
	}
	m := a.Manifest()
	switch {
	case m.Kind == "":
		var known []string
		for _, c := range Creatables() {
			known = append(known, fmt.Sprintf("%s of %s", c.Kind, c.Resource.GroupVersion()))
		}
		v.fail(path, "there are "+strings.Join(known, ", "), "no action creates a %v of %v", object["kind"], object["apiVersion"])
		return
	case m.Name == "":
		v.fail(path+".metadata.name", "write metadata: {name: tenants}", "is missing")
		return
	case slices.Contains(upstreamObjects[m.Kind], m.Name):
		v.fail(path+".metadata.name", "give it a name of its own", "every API server has a %s", m)
	case created[m.String()]:
		v.fail(path+".metadata.name", "create each object once", "a second %s", m)
	}
	created[m.String()] = true
	if m.Kind == "FlowSchema" {
		// The API server takes any level, and lets a FlowSchema without its level match no request.
		spec, _ := object["spec"].(map[string]any)
		reference, _ := spec["priorityLevelConfiguration"].(map[string]any)
		name, _ := reference["name"].(string)
		v.existing(path+".spec.priorityLevelConfiguration.name", "priority level", "PriorityLevelConfiguration", name, created)
	}
}

// existing refuses the name of an object of a kind that neither API servers have
// themselves nor an action has created by then.
func (v *validator) existing(path, what, kind, name string, created map[string]bool) {
	if slices.Contains(upstreamObjects[kind], name) || created[kind+" "+name] {
		return
	}
	known := slices.Clone(upstreamObjects[kind])
	for _, other := range slices.Sorted(maps.Keys(created)) {
		if own, ok := strings.CutPrefix(other, kind+" "); ok {
			known = append(known, own)
		}
	}
	v.fail(path, strictyaml.Hint(name, known, "create it before; there are "+strings.Join(known, ", ")), "no %s %q", what, name)
}
