package importer

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// createRemarks adds remarks about settings of a create job that scenarios do not support. It also adds the labels of the
// job to its namespaces.
func (b *burner) createRemarks(j *burnJob, node *yaml.Node) {
	if b.waitsEach(j) && j.iterations > 1 && !b.apart(j) {
		j.item.remark(node, j.at("podWait"), "iterations do not wait for the pods of the previous iteration, which is supported for up to %d iterations; the run waits for all pods at the end", maxEach)
	}
	if !j.flag("verifyObjects", true) || !j.flag("errorOnVerify", true) {
		addComment(node, "No gate judges whether all objects were created, because errorOnVerify or verifyObjects is off.")
	}
	b.labelGroup(j, node)
	if j.has("objectDelay") || j.has("objectWait") {
		addComment(node, "objectDelay and objectWait have no effect in a create job.")
	}
}

// watchers converts each entry in the job's watchers to a load of watches, in the phase with index first.
func (b *burner) watchers(j *burnJob, first int) {
	var loads []*mapping
	for i, w := range j.list("watchers") {
		item := b.item()
		kind, apiVersion := w.text("kind", ""), w.text("apiVersion", "v1")
		l := block("name", unique(withSuffix(nameOf(j.name), fmt.Sprintf("watch-%d", i+1)), b.names), "kind", "watches", "resource", resourceOf(apiVersion, kind),
			"labelSelector", selector(w.strings("labelSelector")), "scope", "cluster", "count", max(1, w.integer("replicas", 1)), "rate", "100/s",
			"hold", len(b.phases) > first+1 || j.pause > 0)
		if why := b.unserved(manifest{"apiVersion": apiVersion, "kind": kind}, false); why != "" {
			item.remark(l.Node, w.at("kind"), "%s", why)
			continue
		}
		if j != b.jobs[len(b.jobs)-1] {
			item.remark(l.Node, w.at(""), "the watch stays open until the end of the run, not of the job")
		}
		loads = append(loads, l)
	}
	if list := b.phases[first].value("load"); list != nil {
		list.Content = append(toNode(loads).Content, list.Content...)
	}
}

// removal adds a phase that deletes the objects of a job that have the given labels.
func (b *burner) removal(j *burnJob, labels map[string]string, name string) {
	var actions []*mapping
	var gone, done []string
	count := 0
	for i := range b.made {
		m := &b.made[i]
		if m.deleted || m.job != j || !selects(labels, m.labels) {
			continue
		}
		m.deleted = true
		count += m.count
		resource := resourceOf(m.apiVersion, m.kind)
		if slices.Contains(done, resource) {
			continue
		}
		done = append(done, resource)
		actions = append(actions, deletion(resource, selector(labels), false, j.qps))
		if j.waitForDeletion && celName.MatchString(resource) {
			gone = append(gone, noneOf(resource, labels))
		}
	}
	if len(actions) == 0 {
		return
	}
	p := b.phase(withSuffix(nameOf(name), "removed"))
	p.set("actions", actions)
	until(p, gone, j.within+atRate(count, j.qps))
	if slices.ContainsFunc(b.made, func(m madeObjects) bool { return m.job == j && namespaced(m.kind) }) {
		j.item.remark(p.Node, j.at(""), "job %s: its objects are deleted, and its namespaces stay until the end of the run", j.name)
	}
}
