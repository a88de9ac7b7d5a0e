package importer

import (
	"fmt"
	"slices"
	"strings"
)

// note records the objects that a template creates. It adds remarks about differences of these objects in a run.
func (b *burner) note(j *burnJob, t *burnTemplate) {
	say := func(format string, args ...any) {
		t.object.item.remark(t.at.Node, t.object.at("objectTemplate"), format, args...)
	}
	for _, m := range t.objects {
		made := m.made()
		made.count, made.job, made.object = t.count, j, t.object
		b.made = append(b.made, made)
		need := m.need().times(float64(t.count))
		b.demand = b.demand.plus(need)
		if ns := m.namespace(); ns != "" && !b.owns(ns) {
			say("%s %s goes into another namespace of the run: %s is not the namespace of a job", m.kind(), m.name(), ns)
		}
		if names := namespacesIn(map[string]any(m)); slices.ContainsFunc(b.jobs, func(o *burnJob) bool { return o.group == nil && namesOwn(names, o.namespace) }) {
			say("%s names the namespaces %s; the run's namespaces have other names", m.kind(), strings.Join(names, ", "))
		}
		defined := b.creates(func(o madeObjects) bool {
			return o.kind == definitionKind && strings.HasSuffix(o.name, "."+groupOf(m.apiVersion()))
		})
		volumes := b.creates(func(o madeObjects) bool { return o.kind == "PersistentVolume" })
		exists := func(kind, name string) bool {
			return b.creates(func(o madeObjects) bool { return o.kind == kind && o.name == name })
		}
		unserved := ""
		if !defined {
			unserved = b.unserved(m, false)
		}
		for _, problem := range b.problems(m, need, unserved, !volumes, exists) {
			say("%s", problem)
		}
	}
}

// creates reports whether a job, so far, creates objects that is accepts.
func (b *burner) creates(is func(madeObjects) bool) bool { return slices.ContainsFunc(b.made, is) }

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
