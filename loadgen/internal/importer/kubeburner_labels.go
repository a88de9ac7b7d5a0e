package importer

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/userfile"
)

// Labels that kube-burner adds to objects and pods.
const (
	ownPrefix      = "kube-burner.io/"
	jobLabel       = ownPrefix + "job"
	indexLabel     = ownPrefix + "index"
	groupLabel     = ownPrefix + "group"
	iterationLabel = ownPrefix + "job-iteration"
	replicaLabel   = ownPrefix + "replica"
)

// selectors returns all label selectors in the jobs of the configuration.
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

// ownLabels returns a function from a document's index to the labels that kube-burner adds to the document's objects.
// It includes labels with the UUID or run ID only if a selector uses them; otherwise the run's own label replaces them.
func (b *burner) ownLabels(j *burnJob, o *burnObject) func(document int) map[string]string {
	labels := map[string]string{jobLabel: j.name, groupLabel: fmt.Sprint(o.group), iterationLabel: "{{.Iteration}}", replicaLabel: "{{.Replica}}"}
	if o.repeat > 1 {
		labels[iterationLabel] = fmt.Sprintf("{{mul .Iteration %d}}", o.repeat)
	}
	for _, key := range []string{ownPrefix + "uuid", ownPrefix + "runid"} {
		if slices.ContainsFunc(b.selectors(), func(asked map[string]string) bool { _, is := asked[key]; return is }) {
			labels[key] = importUUID
		}
	}
	return func(document int) map[string]string {
		of := maps.Clone(labels)
		of[indexLabel] = fmt.Sprint(o.index + document)
		return of
	}
}

// selected reports whether the objects of a job must have kube-burner's labels, because a selector, churn or a removal
// depends on them.
func (b *burner) selected(j *burnJob, o *burnObject) bool {
	if j.flag("gc", false) || o.sub("group").flag("gc", false) || j.has("incrementalLoad") || j.churn {
		return true
	}
	return slices.ContainsFunc(b.selectors(), func(asked map[string]string) bool {
		return slices.ContainsFunc(sortedKeys(asked), func(key string) bool { return strings.HasPrefix(key, ownPrefix) }) &&
			(asked[jobLabel] == "" || asked[jobLabel] == j.name)
	})
}

// number sets the value of kube-burner's index label for each entry: the number of documents in the templates of
// earlier entries.
func (b *burner) number(j *burnJob) {
	index := 0
	for _, o := range j.objects {
		o.index = index
		if o.replicas < 1 {
			continue
		}
		documents := 0
		data, _ := userfile.Read(filepath.Join(b.dir, o.template), userfile.Text)
		for _, part := range documentTexts(string(data)) {
			if hasFields(strings.Split(part, "\n")) {
				documents++
			}
		}
		index += max(1, documents)
	}
}

// matching returns the objects of earlier jobs that match the label selector of an entry. live are the objects that
// still exist, count is their number, and gone are those that were deleted.
func (b *burner) matching(o *burnObject) (live, gone []*madeObjects, count int) {
	asked := maps.Clone(o.labels)
	delete(asked, iterationLabel) // some object has each value
	delete(asked, replicaLabel)
	for i := range b.made {
		m := &b.made[i]
		labels := m.labels
		switch {
		case o.kind == "Pod" && m.kind != "Pod":
			labels = m.pods
		case m.kind != o.kind || groupOf(m.apiVersion) != groupOf(o.apiVersion):
			continue
		}
		switch {
		case len(labels) == 0 || !selects(asked, labels):
		case m.deleted:
			gone = append(gone, m)
		default:
			live, count = append(live, m), count+m.count
		}
	}
	return live, gone, count
}
