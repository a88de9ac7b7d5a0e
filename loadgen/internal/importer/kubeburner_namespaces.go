package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// maxNamespaces is the maximum number of namespaces of a load.
const maxNamespaces = 10_000

// burnGroup is a group of namespaces that one or several jobs use.
type burnGroup struct {
	scenario.NamespaceGroup
	used bool
}

// needed returns the number of namespaces of a job with namespacedIterations.
func (j *burnJob) needed() int {
	iterations := j.iterations
	if steps := j.sub("incrementalLoad"); steps.node != nil {
		iterations = max(iterations, steps.integer("startIterations", 0), steps.integer("totalIterations", 0))
	}
	return (iterations + j.perNamespace - 1) / j.perNamespace
}

// readGroups collects the namespaces of the jobs. Jobs that use the same namespaces share a group.
func (b *burner) readGroups() {
	for _, j := range b.jobs {
		if j.kind != "create" || j.namespace == "" {
			continue
		}
		g := &burnGroup{}
		g.Name = j.namespace
		if j.inNamespaces {
			g.Count = min(j.needed(), maxNamespaces)
		}
		at := slices.IndexFunc(b.groups, func(o *burnGroup) bool { return o.Name == g.Name && (o.Count == 0) == (g.Count == 0) })
		clashes := func(o *burnGroup) bool { // only one of the two groups has a count, and they have a common namespace
			return (o.Count == 0) != (g.Count == 0) && (o.Name == g.Name || slices.Contains(o.Names(), g.Name) || slices.Contains(g.Names(), o.Name))
		}
		why, _ := g.Unusable()
		switch {
		case why != "":
			j.noGroup = why
		case slices.ContainsFunc(b.groups, clashes):
			j.noGroup = "namespacedIterations is different in another job with these namespaces"
		case at < 0:
			b.groups, j.group = append(b.groups, g), g
		default:
			j.group = b.groups[at]
			j.group.Count = max(j.group.Count, g.Count)
		}
		if j.group != nil {
			b.namespaceLabels[jobLabel] = true
			for key := range j.strings("namespaceLabels") {
				b.namespaceLabels[key] = true
			}
		}
	}
}

// labelGroup adds the labels and annotations of a job to its namespaces. kube-burner does not change the labels of
// existing namespaces. labelGroup also adds remarks about the namespaces.
func (b *burner) labelGroup(j *burnJob, node *yaml.Node) {
	labels, annotations := j.strings("namespaceLabels"), j.strings("namespaceAnnotations")
	if !slices.ContainsFunc(j.made, func(m burnBatch) bool { return m.spread }) {
		return // kube-burner creates no namespaces
	}
	if n := j.needed(); j.inNamespaces && n > maxNamespaces {
		j.item.remark(node, j.at("namespacedIterations"), "kube-burner creates %d namespaces, but a load has at most %d", n, maxNamespaces)
	}
	if j.noGroup != "" {
		j.item.remark(node, j.at("namespace"), "the objects go into the run's namespaces: %s", j.noGroup)
		all := map[string]string{}
		maps.Copy(all, annotations)
		maps.Copy(all, labels)
		if len(all) > 0 {
			j.item.remark(node, j.at("namespaceLabels"), "the run's namespaces do not get %s", selector(all))
		}
	}
	if j.group == nil {
		return
	}
	if j.group.Labels == nil {
		j.group.Labels, j.group.Annotations = map[string]string{jobLabel: j.name}, map[string]string{}
	}
	merge := func(field string, into, from map[string]string) {
		for _, key := range sortedKeys(from) {
			if had, ok := into[key]; ok && had != from[key] {
				j.item.remark(node, j.at(field), "%s of the namespaces keeps the value %q from an earlier job", key, had)
				continue
			}
			into[key] = from[key]
		}
	}
	merge("namespaceLabels", j.group.Labels, labels)
	merge("namespaceAnnotations", j.group.Annotations, annotations)
}

// spread sets the iterations of a load or an action, and the namespaces over which it distributes the objects.
func (b *burner) spread(j *burnJob, made burnBatch, m *mapping) {
	grouped := made.spread && j.group != nil
	m.add("iterations", when(made.iterations > 1 || grouped && j.group.Count > 1, made.iterations))
	if grouped {
		j.group.used = true
		m.set("namespaceGroup", j.group.Name)
	}
	needed := j.needed()
	switch {
	case !made.spread || !j.inNamespaces || made.iterations == 1, needed == 1 && (j.group == nil || j.group.Count == 1):
	case needed > maxNamespaces:
		m.set("namespaces", min(made.iterations, maxNamespaces))
	case j.perNamespace > 1:
		m.set("iterationsPerNamespace", j.perNamespace)
	case j.group == nil:
		m.set("namespaces", made.iterations)
	}
}

// namespacesIn returns the names of namespaces that an object refers to outside of its metadata.
func namespacesIn(m manifest) (names []string) {
	const nameLabel = corev1.LabelMetadataName
	m.each(func(m manifest) {
		for key, value := range m {
			if text, ok := value.(string); ok && (key == "namespace" || key == nameLabel) {
				names = append(names, text)
			}
			if key == "values" && m["key"] == nameLabel || key == "namespaces" && m["topologyKey"] != nil {
				for _, one := range asList(value) {
					names = append(names, fmt.Sprint(one))
				}
			}
		}
	})
	return distinct(names)
}

// namesOwn reports whether `names` contains a namespace of a job. base is the common prefix of the job's namespaces.
func namesOwn(names []string, base string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		rest, ok := strings.CutPrefix(name, base)
		return ok && base != "" && (rest == "" || strings.HasPrefix(rest, "-"))
	})
}
