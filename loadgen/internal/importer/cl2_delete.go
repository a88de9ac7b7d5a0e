package importer

import (
	"fmt"
	"slices"

	bounds "github.com/stormglass/stormglass/loadgen/internal/template"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// cl2Bundle is a template in the scenario. It creates the objects of one ClusterLoader2 objectBundle, with indexes from
// first.
type cl2Bundle struct {
	text            *templateText
	documents       []string // the basename of each document
	first, replicas int
	labelled        bool
}

// Labels that label adds to the objects of a bundle, so that a later deletion can select them.
const (
	bundleLabel      = "imported.bundle"
	bundleIndexLabel = "imported.index"
)

// label adds bundleLabel and bundleIndexLabel to the template, unless the template has them. It returns false if they
// cannot be added.
func (b *cl2Bundle) label(limits *bounds.Bounds) bool {
	if b.labelled {
		return true
	}
	var values []map[string]any
	for i := range min(b.replicas, maxIndexes) {
		values = append(values, sampleValues(i+1))
	}
	values = append(values, sampleValues(b.replicas))
	b.text.text, b.labelled = addLabels(limits, b.text.text, values, false, func(document int) map[string]string {
		basename := b.documents[min(document, len(b.documents)-1)]
		return map[string]string{bundleLabel: nameOf(basename), bundleIndexLabel: "{{" + indexExpr(b.first) + "}}"}
	})
	return b.labelled
}

// sampleValues returns the values with which a load renders a template for one replica.
func sampleValues(replica int) map[string]any {
	return map[string]any{"Replica": replica, "Iteration": 0, "JobName": "import", "Namespace": scenario.NamespaceMark}
}

// fewNames and maxNamed are limits for deletions by name. A deletion of up to fewNames objects lists their names. A
// larger one selects by label. If the templates cannot get labels, it lists the first maxNamed names.
const (
	fewNames = 10
	maxNamed = 2000
)

// labelled adds labels to the templates of the objects that key identifies. It returns a label selector for the objects
// whose index is at least from. ok is false if a template cannot get labels or no template creates these objects.
func (c *cl2) labelled(key cl2Objects, from int) (labelSelector string, ok bool) {
	for _, b := range c.madeBy[key] {
		if !b.label(c.limits) {
			return "", false
		}
	}
	labelSelector = bundleLabel + "=" + nameOf(key.basename)
	if from > 0 {
		labelSelector += fmt.Sprintf(",%s>%d", bundleIndexLabel, from-1)
	}
	return labelSelector, len(c.madeBy[key]) > 0
}

// deletions returns the delete actions for a phase that lowers the number of replicas. Each action selects its objects
// by name or by label.
func (c *cl2) deletions(p *cl2Phase) (all []*mapping) {
	for i, key := range slices.Backward(p.keys) {
		made, ok := c.made[key]
		if !ok {
			p.item.remark(c.lastPhase(), p.objects[i].at("objectTemplatePath"), "%s: no earlier step creates any, so there is nothing to delete", key.basename)
			continue
		}
		target := flow("resource", made.resource())
		c.asked.actions = append(c.asked.actions, "delete "+made.resource())
		all = append(all, block("kind", "delete", "target", target))
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
		var names []string
		for n := p.want; n < min(p.have, p.want+maxNamed); n++ {
			names = append(names, fmt.Sprintf("%s-%d", key.basename, n))
		}
		target.set("names", names)
	}
	return all
}
