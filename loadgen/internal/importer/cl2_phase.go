package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// cl2Phase is a phase of a ClusterLoader2 step. It creates or deletes object bundles until each namespace has `want` of
// them. `have` is the number per namespace before the phase. If both are equal, the phase updates the bundles.
type cl2Phase struct {
	*fields
	item       *item
	objects    []*fields
	want, have int
	spread     int    // number of namespaces in the scenario; 0 if the objects have no namespace
	asked      int    // number of namespaces in the test, which may exceed the limit of a load
	where      string // identifies the namespaces of the phase, such as "1-10test"
	keys       []cl2Objects
}

// change returns the number of bundles in all namespaces that the phase creates or deletes. If the number of replicas
// stays the same, it returns the number of bundles that the phase updates.
func (p *cl2Phase) change() int {
	change := cmp.Or(p.want-p.have, p.want)
	return max(change, -change) * max(1, p.spread)
}

// phasesOf merges the phases of a step, which run in parallel, into one phase of the scenario. A creation with a rate
// becomes a load. Other creations, updates and deletions become actions.
func (c *cl2) phasesOf(name string, all []*fields) {
	var phases []*cl2Phase
	together := map[string]int{}
	for _, f := range all {
		p := c.readPhase(f)
		phases = append(phases, p)
		together[f.text("tuningSet", "")] += p.change()
	}
	phase := newMapping()
	phase.set("name", "")
	c.phases = append(c.phases, phase) // so that remarks about the phase become comments before it
	var loads, actions []*mapping
	var rates []float64
	var takes time.Duration
	for _, p := range phases {
		if p.change() == 0 {
			p.ignore("tuningSet")
			for _, o := range p.objects {
				o.ignore("templateFillMap")
			}
			continue
		}
		pace := c.pace(p.item, p.fields, p.change(), len(p.objects), together[p.text("tuningSet", "")])
		templates, each := c.bundle(p)
		if pace.rate > 0 {
			takes = max(takes, time.Duration(float64(p.change())/pace.rate*float64(time.Second)))
		}
		switch {
		case len(templates) == 0:
		case p.want > p.have && pace.rate > 0:
			c.asked.rates = append(c.asked.rates, rateText(pace.rate*float64(each), pace.burst*each, length(pace.every)))
			l := block("name", unique(p.keys[0].basename, c.names), "kind", "objects")
			pace.into(l, each)
			loads = append(loads, c.fill(l, p, templates))
		case p.want > p.have:
			actions, rates = append(actions, c.fill(block("kind", "create"), p, templates)), append(rates, 0)
		case p.want == p.have:
			c.asked.actions = append(c.asked.actions, "apply")
			actions, rates = append(actions, c.fill(block("kind", "apply"), p, templates)), append(rates, pace.rate*float64(each))
		default:
			for _, a := range c.deletions(p) {
				actions, rates = append(actions, a), append(rates, pace.rate)
			}
		}
		for _, key := range p.keys {
			c.replicas[key] = p.want
		}
	}
	if len(loads)+len(actions) == 0 {
		if slices.ContainsFunc(phases, func(p *cl2Phase) bool { return p.change() > 0 }) {
			c.lose("step", name)
		}
		c.phases = c.phases[:len(c.phases)-1]
		appendComment(&c.top, phase.HeadComment) // keep the remarks about objects that were left out
		return
	}
	phase.set("name", unique(name, c.names))
	// Actions run one after another. With the sum of the rates, they take as long as they would in parallel.
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	for i, a := range actions {
		if rates[i] > 0 {
			a.set("rate", perSecond(sum))
		}
	}
	if len(actions) > 1 {
		addComment(phase.Node, "ClusterLoader2 runs these in parallel; here they run one after another, at the same total rate.")
	}
	phase.add("actions", actions)
	if len(loads) == 0 {
		phase.set("for", "1s")
		return
	}
	phase.add("load", loads, "until", "objectsMade", "within", length(2*takes+10*time.Minute))
}

// readPhase reads a phase. It takes the number of replicas before the phase from the phases that were converted so far.
func (c *cl2) readPhase(f *fields) *cl2Phase {
	p := &cl2Phase{fields: f, item: c.item(), objects: f.list("objectBundle"), want: f.integer("replicasPerNamespace", 0)}
	r := f.sub("namespaceRange")
	if r.node != nil {
		from, to := r.integer("min", 1), r.integer("max", 1)
		p.spread, p.where = max(0, to-from+1), fmt.Sprintf("%d-%d%s", from, to, r.text("basename", ""))
		if !c.oneFamily && (from != 1 || r.has("basename")) {
			p.item.remark(c.lastPhase(), r.at(""), "objects go into the first %d namespaces of the run, not into %s%d to %d", p.spread, r.text("basename", ""), from, to)
		}
	}
	if list := f.texts("namespaceList"); len(list) > 0 {
		p.spread, p.where = len(list), strings.Join(list, ",")
		p.item.remark(c.lastPhase(), f.at("namespaceList"), "objects go into the run's namespaces, not into %s", p.where)
	}
	for _, o := range p.objects {
		key := cl2Objects{o.text("basename", ""), o.text("objectTemplatePath", ""), p.where}
		p.keys = append(p.keys, key)
		p.have = max(p.have, c.replicas[key])
		if o.has("listUnknownObjectOptions") {
			p.item.remark(c.lastPhase(), o.at("listUnknownObjectOptions"), "objects that the test did not create stay until the end of the run")
		}
	}
	if p.asked = p.spread; p.spread > maxNamespaces {
		p.item.remark(c.lastPhase(), r.at("max"), "%d namespaces are too many: a load has at most %d", p.spread, maxNamespaces)
		p.spread = maxNamespaces
	}
	return p
}

// bundle returns the templates of a phase's objects and the number of objects in each bundle. It returns no templates
// if no object can be converted.
func (c *cl2) bundle(p *cl2Phase) (templates []*mapping, each int) {
	var parts, documents []string
	file := "bundle.yaml"
	first := 0
	if p.want > p.have {
		first = p.have
	}
	for i, o := range p.objects {
		at := o.at("objectTemplatePath")
		key := p.keys[i]
		values := maps.Clone(c.values)
		maps.Copy(values, o.values("templateFillMap"))
		if p.want < p.have { // a deletion needs only the kind of the objects
			if _, known := c.latest[key]; known {
				each++
				continue
			}
		}
		text, err := c.templates.object(key.template, key.basename, first, max(1, p.want-first), values)
		if err == nil && text == "" {
			continue
		}
		var objects []manifest
		if err == nil {
			objects, err = render(c.limits, text, sampleValues(1))
		}
		switch {
		case strings.Contains(key.template, noValue):
			o.fail("objectTemplatePath", "a value of the test's template is missing: the path is %s (add --set NAME=VALUE, or --testoverrides FILE)", key.template)
			continue
		case errors.Is(err, fs.ErrNotExist):
			o.fail("objectTemplatePath", "cannot read %s: no such file (paths are relative to the test's directory)", key.template)
			continue
		case err != nil:
			c.creates(p, "of "+key.template)
			p.item.remark(c.lastPhase(), at, "%s %s is left out: %v", key.basename, key.template, err)
			continue
		case strings.Contains(text, noValue):
			o.fail("objectTemplatePath", "%s: a value is missing: %s (add it to templateFillMap, --set NAME=VALUE or --testoverrides FILE)", key.template, strings.TrimSpace(lineWithoutValue.FindString(text)))
			continue
		}
		for _, m := range objects {
			c.note(p, key, m)
			documents = append(documents, key.basename)
		}
		each += len(objects)
		parts = append(parts, text)
		file = path.Base(key.template)
	}
	if len(parts) == 0 {
		if p.want < p.have && each > 0 {
			return []*mapping{newMapping()}, each
		}
		return nil, 0
	}
	replicas := cmp.Or(p.want-p.have, p.want)
	t := block("replicas", when(replicas > 1, replicas))
	text := strings.Join(parts, "---\n")
	if p.want == p.have {
		c.updates++
		text = fmt.Sprintf("{{- $_ := randNumeric %d }}\n", c.updates) + text // makes the random values of each update different
	}
	made := c.template(t, file, text)
	if p.want > p.have {
		bundle := &cl2Bundle{text: made, documents: documents, first: first, replicas: p.want - first}
		for _, key := range p.keys {
			c.madeBy[key] = append(c.madeBy[key], bundle)
		}
	}
	return []*mapping{t}, each
}

// noValue is the text that a template renders for a missing value.
const noValue = "<no value>"

var lineWithoutValue = regexp.MustCompile("[^\n]*" + noValue + "[^\n]*")

// note records the kind and the labels of an object of a phase. It adds remarks about anything in the object that the
// run or a bundled control plane does not support.
func (c *cl2) note(p *cl2Phase, key cl2Objects, m manifest) {
	made := madeObjects{manifest: m, labels: m.labels(), phase: -1}
	if p.want > p.have {
		made.phase = len(c.phases) - 1
	}
	c.latest[key], c.made = made, append(c.made, made)
	c.creates(p, m.kind())
	var problems []string
	for _, path := range builtin.UnknownFields(m) {
		problems = append(problems, fmt.Sprintf("%s: the run refuses objects with fields that Kubernetes lacks (remove from the template: %s)", m.kind(), strings.Join(path, ".")))
	}
	problems = append(problems, c.problems(m, m.need().times(float64(p.change())), c.unserved(m, p.where == ""), true)...)
	for _, problem := range problems {
		if c.first(problem) {
			p.item.remark(c.lastPhase(), p.at("objectBundle"), "%s", problem)
		}
	}
}

// creates adds the objects of a kind that a phase creates to the object counts of the current step.
func (c *cl2) creates(p *cl2Phase, kind string) {
	if p.want > p.have {
		c.asked.objects[kind] += (p.want - p.have) * max(1, p.asked)
		c.asked.namespaces = max(c.asked.namespaces, p.asked, 1)
	}
}

// fill adds the templates of a phase's objects, and the number of their namespaces, to a load or an action.
func (c *cl2) fill(m *mapping, p *cl2Phase, templates []*mapping) *mapping {
	return m.add("namespaces", when(p.spread > 1, p.spread), "placement", when(c.options.OwnCluster, "none"), "templates", templates)
}

// cl2Bundle is a template in the scenario. It creates the objects of one ClusterLoader2 objectBundle. Their indexes
// start at `first`.
type cl2Bundle struct {
	text            *templateText
	documents       []string // for each YAML document in text, the basename of the object in the objectBundle
	first, replicas int
	labelled        bool
}

// The method cl2.labelled adds these labels to a bundle's objects, so that a later deletion can select the objects.
const (
	bundleLabel      = "imported.bundle"
	bundleIndexLabel = "imported.index"
)

// sampleValues returns the values with which a load renders a template for one replica.
func sampleValues(replica int) map[string]any {
	return map[string]any{"Replica": replica, "Iteration": 0, "JobName": "import", "Namespace": scenario.NamespaceMark}
}

// fewNames and maxNamed are limits for deletions by name. A deletion of up to fewNames objects lists their names. A
// larger deletion selects its objects by label or, if the templates cannot get labels, lists the first maxNamed names.
const (
	fewNames = 10
	maxNamed = 2000
)

// labelled adds labels to the templates of the objects that key identifies. It returns a label selector for the objects
// with an index of at least `from`. ok is false if no template creates them or one cannot get labels.
func (c *cl2) labelled(key cl2Objects, from int) (labelSelector string, ok bool) {
	for _, b := range c.madeBy[key] {
		if b.labelled {
			continue
		}
		values := []map[string]any{sampleValues(b.replicas)}
		for i := range min(b.replicas, maxIndexes) {
			values = append(values, sampleValues(i+1))
		}
		b.text.text, b.labelled = addLabels(c.limits, b.text.text, values, false, func(document int) map[string]string {
			basename := b.documents[min(document, len(b.documents)-1)]
			return map[string]string{bundleLabel: nameOf(basename), bundleIndexLabel: "{{" + indexExpr(b.first) + "}}"}
		})
		if !b.labelled {
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
		made, ok := c.latest[key]
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
