package importer

import (
	"fmt"
	"slices"
	"strings"
)

// note records the objects that a template creates. It adds remarks about differences of these objects in a run.
func (b *burner) note(t *mapping, j *burnJob, o *burnObject, objects []manifest, iterations int) {
	count := o.replicas * iterations
	for _, m := range objects {
		made := madeObjects{kind: m.kind(), apiVersion: m.apiVersion(), labels: m.labels(), pods: m.podLabels(), count: count, job: j, object: o, name: m.name()}
		b.made = append(b.made, made)
		n := m.need()
		b.demand = b.demand.plus(n.times(count))
		if ns := m.namespace(); ns != "" && !b.owns(ns) {
			o.item.remark(t.Node, o.at("objectTemplate"), "%s %s goes into another namespace of the run: %s is not the namespace of a job", m.kind(), m.name(), ns)
		}
		if names := namespacesIn(map[string]any(m)); slices.ContainsFunc(b.jobs, func(o *burnJob) bool { return o.group == nil && namesOwn(names, o.namespace) }) {
			o.item.remark(t.Node, o.at("objectTemplate"), "%s names the namespaces %s; the run's namespaces have other names", m.kind(), strings.Join(names, ", "))
		}
		if b.options.OwnCluster {
			continue
		}
		why := ""
		if !b.defined(m) {
			why = b.unserved(m, false)
		}
		switch {
		case why != "":
			o.item.remark(t.Node, o.at("objectTemplate"), "%s", why)
		case n.claims && !b.makes("PersistentVolume"):
			o.item.remark(t.Node, o.at("objectTemplate"), "a bundled control plane provisions no volumes: claims, and pods with them, stay Pending")
		}
		for _, problem := range b.problems(m, n.times(count), b.creates) {
			o.item.remark(t.Node, o.at("objectTemplate"), "%s", problem)
		}
	}
}

// defined reports whether an earlier job creates the definition of a custom resource.
func (b *burner) defined(m manifest) bool {
	return slices.ContainsFunc(b.made, func(o madeObjects) bool {
		return o.kind == "CustomResourceDefinition" && strings.HasSuffix(o.name, "."+groupOf(m.apiVersion()))
	})
}

// creates reports whether a job, so far, creates an object of a kind with a name.
func (b *burner) creates(kind, name string) bool {
	return slices.ContainsFunc(b.made, func(o madeObjects) bool { return o.kind == kind && o.name == name })
}

func (b *burner) makes(kind string) bool {
	return slices.ContainsFunc(b.made, func(o madeObjects) bool { return o.kind == kind })
}

// namespacesIn returns the names of namespaces that an object refers to outside of its metadata.
func namespacesIn(v any) (names []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			text, isText := value.(string)
			switch {
			case key == "metadata":
			case isText && (key == "namespace" || key == "kubernetes.io/metadata.name"):
				names = append(names, text)
			case key == "values" && v["key"] == "kubernetes.io/metadata.name", key == "namespaces" && v["topologyKey"] != nil:
				for _, one := range asList(value) {
					names = append(names, fmt.Sprint(one))
				}
			default:
				names = append(names, namespacesIn(value)...)
			}
		}
	case []any:
		for _, one := range v {
			names = append(names, namespacesIn(one)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func asList(v any) []any {
	all, _ := v.([]any)
	return all
}

// namesOwn reports whether names contains a namespace of a job. base is the common prefix of the job's namespaces.
func namesOwn(names []string, base string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		rest, ok := strings.CutPrefix(name, base)
		return ok && base != "" && (rest == "" || strings.HasPrefix(rest, "-"))
	})
}
