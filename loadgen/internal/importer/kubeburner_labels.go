package importer

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/userfile"
)

// The labels that kube-burner puts onto objects and pods.
const (
	ownPrefix      = "kube-burner.io/"
	jobLabel       = ownPrefix + "job"
	indexLabel     = ownPrefix + "index"
	groupLabel     = ownPrefix + "group"
	iterationLabel = ownPrefix + "job-iteration"
	replicaLabel   = ownPrefix + "replica"
)

// selectors are the label selectors of all jobs.
func (b *burner) selectors() (all []map[string]string) {
	for _, j := range b.jobs {
		for _, o := range j.objects {
			all = append(all, o.labels, o.sub("waitOptions").strings("labelSelector"))
		}
		for _, w := range j.list("watchers") {
			all = append(all, w.strings("labelSelector"))
		}
	}
	return all
}

// ownLabels are the labels that kube-burner puts onto the objects of a job's template, by document. A run's own label
// stands for those of its UUID, which are there if a selector asks for them.
func (b *burner) ownLabels(j *burnJob, o *burnObject) func(document int) map[string]string {
	labels := map[string]string{jobLabel: j.name, groupLabel: fmt.Sprint(o.group), iterationLabel: "{{.Iteration}}", replicaLabel: "{{.Replica}}"}
	if o.repeat > 1 {
		labels[iterationLabel] = fmt.Sprintf("{{mul .Iteration %d}}", o.repeat)
	}
	for _, asked := range b.selectors() {
		for _, key := range []string{ownPrefix + "uuid", ownPrefix + "runid"} {
			if _, ok := asked[key]; ok {
				labels[key] = importUUID
			}
		}
	}
	return func(document int) map[string]string {
		of := maps.Clone(labels)
		of[indexLabel] = fmt.Sprint(o.index + document)
		return of
	}
}

// selected reports whether selectors, churn or a removal ask for the labels of kube-burner's on the objects of a job.
func (b *burner) selected(j *burnJob, o *burnObject) bool {
	if j.flag("gc", false) || o.sub("group").flag("gc", false) || j.has("incrementalLoad") || j.churn {
		return true
	}
	return slices.ContainsFunc(b.selectors(), func(asked map[string]string) bool {
		return slices.ContainsFunc(sortedKeys(asked), func(key string) bool { return strings.HasPrefix(key, ownPrefix) }) &&
			(asked[jobLabel] == "" || asked[jobLabel] == j.name)
	})
}

// number gives the objects of a job the index that kube-burner counts: of each document of each template that it makes.
func (b *burner) number(j *burnJob) {
	index := 0
	for _, o := range j.objects {
		o.index = index
		if o.replicas < 1 {
			continue
		}
		documents := 0
		if data, err := userfile.Read(filepath.Join(b.dir, o.template), userfile.Text); err == nil {
			for _, part := range documentTexts(string(data)) {
				if hasFields(strings.Split(part, "\n")) {
					documents++
				}
			}
		}
		index += max(1, documents)
	}
}

// matching are the objects that earlier jobs have made and a selector selects.
func (b *burner) matching(o *burnObject) (live, gone []*madeObjects) {
	asked := maps.Clone(o.labels)
	maps.DeleteFunc(asked, func(key, _ string) bool { return key == iterationLabel || key == replicaLabel }) // each of some object
	for i := range b.made {
		m := &b.made[i]
		labels := m.labels
		switch {
		case o.kind == "Pod" && m.kind != "Pod":
			labels = m.pods
		case m.kind != o.kind || groupOf(m.apiVersion) != groupOf(o.apiVersion):
			continue
		}
		if len(labels) == 0 || !selects(asked, labels) {
			continue
		}
		if m.deleted {
			gone = append(gone, m)
		} else {
			live = append(live, m)
		}
	}
	return live, gone
}
