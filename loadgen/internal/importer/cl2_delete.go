package importer

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// cl2Bundle is the template of the objects of a bundle, for the objects from index first on.
type cl2Bundle struct {
	text            *templateText
	documents       []string // the basename of each document
	first, replicas int
	labelled        bool
}

// The labels that select the objects of a bundle.
const (
	bundleLabel      = "imported.bundle"
	bundleIndexLabel = "imported.index"
)

// label adds the bundle labels to the template. It reports whether the template has the labels.
func (b *cl2Bundle) label() bool {
	if b.labelled {
		return true
	}
	var values []map[string]any
	for i := range min(b.replicas, maxIndexes) {
		values = append(values, map[string]any{"Replica": i + 1, "Iteration": 0, "JobName": "import", "Namespace": scenario.NamespaceMark})
	}
	values = append(values, map[string]any{"Replica": b.replicas, "Iteration": 0, "JobName": "import", "Namespace": scenario.NamespaceMark})
	b.text.text, b.labelled = addLabels(b.text.text, values, false, func(document int) map[string]string {
		basename := b.documents[min(document, len(b.documents)-1)]
		return map[string]string{bundleLabel: nameOf(basename), bundleIndexLabel: "{{" + indexExpr(b.first) + "}}"}
	})
	return b.labelled
}

// Limits for deletions by name. A deletion of at most fewNames objects lists their names. A larger deletion uses labels
// or, if labels are not possible, lists at most maxNamed names.
const (
	fewNames = 10
	maxNamed = 2000
)

// labelled adds labels to the templates of objects, and returns a label selector for the objects from index from on. ok
// is false if labels are not possible.
func (c *cl2) labelled(key cl2Objects, from int) (labelSelector string, ok bool) {
	for _, b := range c.madeBy[key] {
		if !b.label() {
			return "", false
		}
	}
	labelSelector = bundleLabel + "=" + nameOf(key.basename)
	if from > 0 {
		labelSelector += fmt.Sprintf(",%s>%d", bundleIndexLabel, from-1)
	}
	return labelSelector, len(c.madeBy[key]) > 0
}

// deletions returns the actions that delete the excess objects of a phase, by name or by label.
func (c *cl2) deletions(p *cl2Phase) (all []*mapping) {
	for i := len(p.keys) - 1; i >= 0; i-- {
		key := p.keys[i]
		made, ok := c.made[key]
		if !ok {
			p.item.remark(c.lastPhase(), p.objects[i].at("objectTemplatePath"), "%s: no earlier step creates any, so there is nothing to delete", key.basename)
			continue
		}
		target := flow("resource", resourceOf(made.apiVersion, made.kind))
		a := newMapping()
		a.set("kind", "delete")
		a.set("target", target)
		all = append(all, a)
		p.objects[i].ignore("templateFillMap")
		if p.have-p.want > fewNames {
			if selected, ok := c.labelled(key, p.want); ok {
				target.set("labelSelector", selected)
				continue
			}
		}
		if n := p.have - p.want; n > maxNamed {
			p.item.remark(c.lastPhase(), p.at("replicasPerNamespace"), "the first %d of %d objects %s are deleted", maxNamed, n, key.basename)
		}
		names := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for n := p.want; n < min(p.have, p.want+maxNamed); n++ {
			names.Content = append(names.Content, toNode(fmt.Sprintf("%s-%d", key.basename, n)))
		}
		target.set("names", names)
	}
	return all
}
