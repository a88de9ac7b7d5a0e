package importer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

type burnChurn struct {
	*fields
	cycles, percent              int
	duration, delay, deleteDelay time.Duration
	objects                      bool // whether the churn mode is "objects"; otherwise it is "namespaces"
}

// maxCycles is the maximum number of churn cycles that become separate phases.
const maxCycles = 10

// churn adds the phases that delete and recreate a part of a job's objects (pkg/burner/create.go). In mode `objects`,
// kube-burner replaces the oldest objects of each template. In mode `namespaces`, it replaces all objects in some
// namespaces.
func (b *burner) churn(j *burnJob) {
	if j.flag("churn", false) {
		b.lose("churn of job", j.name)
		j.item.remark(b.lastPhase(), j.at("churn"), "no churn: since version 2, kube-burner reads churnConfig (write churnConfig: {cycles: ..., percent: ..., delay: ...})")
		j.ignore("churnCycles", "churnDuration", "churnPercent", "churnDelay", "churnDeletionStrategy")
	}
	if !j.churn {
		return
	}
	f := j.sub("churnConfig")
	mode := f.text("mode", "namespaces")
	c := burnChurn{
		fields: f, cycles: f.integer("cycles", 0), percent: f.integer("percent", 0), duration: f.duration("duration", 0),
		delay: f.duration("delay", 0), deleteDelay: f.duration("deleteDelay", 0), objects: mode == "objects",
	}
	item := b.item()
	last := b.lastPhase()
	spread := slices.ContainsFunc(j.made, func(m burnBatch) bool { return m.spread })
	switch {
	case mode != "objects" && mode != "namespaces":
		item.remark(last, c.at("mode"), "no churn: kube-burner knows the modes namespaces and objects, and does nothing in mode %q", mode)
	case j.has("incrementalLoad"):
		addComment(last, "kube-burner finds nothing to churn: the last step has removed its objects.")
	case !c.objects && !spread && j.inNamespaces:
		addComment(last, "kube-burner skips the churn: the job has no namespaces.")
	case !c.objects && (!j.inNamespaces || j.perNamespace > 1):
		b.lose("churn of job", j.name)
		item.remark(last, c.at("mode"), "no churn: kube-burner deletes namespaces of several iterations here, and recreates different objects in them")
	case c.cycles > 0 && c.cycles <= maxCycles:
		b.cycles(j, c, item)
	default:
		b.repeats(j, c, item)
	}
}

// again returns the actions that recreate the deleted objects of batches.
func (b *burner) again(j *burnJob, batches []burnBatch) (all []*mapping) {
	for _, m := range batches {
		a := block("kind", "create", "onlyMissing", true, "rate", perSecond(j.qps))
		b.spread(j, m, a)
		all = append(all, a.add("vars", flow("JobName", j.name), "placement", when(b.options.OwnCluster, "none"), "templates", b.templatesOf(m)))
	}
	return all
}

// churned returns those templates of a job whose objects the churn replaces.
func (c burnChurn) churned(j *burnJob) (all []*burnTemplate) {
	for _, m := range j.made {
		all = append(all, slices.DeleteFunc(slices.Clone(m.templates), func(t *burnTemplate) bool { return c.objects && !t.object.flag("churn", true) })...)
	}
	return all
}

// documentLabels returns labels that select the objects of one document of a template.
func (t *burnTemplate) documentLabels(j *burnJob, document int) map[string]string {
	return map[string]string{jobLabel: j.name, indexLabel: fmt.Sprint(t.object.index + document)}
}

// labelled selects, by labels, the objects to delete. count is the number of these objects.
type labelled struct {
	resource string
	selector labelRange
	count    int
}

// cycles adds two phases for each churn cycle: one that deletes objects and one that recreates them.
func (b *burner) cycles(j *burnJob, c burnChurn, item *item) {
	first, templates := len(b.phases), c.churned(j)
	random := rand.New(rand.NewPCG(1, uint64(len(b.parts)-1)))
	if !c.objects {
		b.lose("deletion of namespaces by the churn of job", j.name)
	}
	batches := slices.DeleteFunc(slices.Clone(j.made), func(m burnBatch) bool {
		return !slices.ContainsFunc(m.templates, func(t *burnTemplate) bool { return slices.Contains(templates, t) })
	})
	waits := j.waits
	if !c.objects && (!j.wait || b.wait) {
		waits = nil
	}
	for n := range c.cycles {
		var churned []labelled
		if c.objects {
			churned = j.oldest(templates, c.percent, n)
		} else {
			churned = j.ofNamespaces(templates, c.percent, random)
		}
		name := withSuffix(nameOf(j.name), fmt.Sprintf("churn-%d", n+1))
		p := b.phase(name)
		var actions []*mapping
		var gone []string
		count := 0
		for _, l := range churned {
			actions = append(actions, deletion(l.resource, l.selector.text(), c.objects, j.qps))
			count += l.count
			if celName.MatchString(l.resource) {
				gone = append(gone, fmt.Sprintf("count(%s where %s) == 0", l.resource, l.selector.test()))
			} else if n == 0 {
				item.remark(p.Node, c.at(""), "the run does not wait for deletions of %s: a condition cannot contain this resource name", l.resource)
			}
		}
		p.set("actions", actions)
		hasPods := func(t *burnTemplate) bool { // the template's controllers give their own labels to their pods
			return slices.ContainsFunc(t.objects, func(o manifest) bool { return len(labelPaths(o)) > 1 })
		}
		if !c.objects && slices.ContainsFunc(templates, hasPods) {
			gone = append(gone, fmt.Sprintf("count(pods where %s) == 0", churned[0].selector.test()))
		}
		until(p, gone, b.timeout+atRate(count, j.qps))
		b.pause(name, c.deleteDelay)
		p = b.phase(withSuffix(name, "again"))
		p.set("actions", b.again(j, batches))
		until(p, distinct(waits), j.within+atRate(count, j.qps))
		b.pause(withSuffix(name, "delay"), c.delay)
	}
	j.churned = len(b.phases) - 1
	if !c.objects {
		item.remark(b.topOf(first), c.at(""), "each cycle deletes and recreates the objects in %d of the namespaces, which the import chose at random; the namespaces stay",
			max(1, c.percent*j.iterations/100))
	}
	if c.duration > 0 {
		item.remark(b.topOf(first), c.at("duration"), "all cycles run, even if they take longer than %s", c.duration)
	}
}

// oldest returns the objects that a churn cycle deletes in mode `objects`: a percentage of the objects of each
// template, the oldest first. cycle is the number of the cycle, from 0.
func (j *burnJob) oldest(templates []*burnTemplate, percent, cycle int) (all []labelled) {
	for _, t := range templates {
		n := min(t.count, max(1, percent*t.count/100))
		for document, object := range t.objects {
			from := cycle * n % t.count
			for left := n; left > 0; from = 0 {
				part := min(left, t.count-from)
				for _, r := range rangesOf(from, part, t.object.replicas, t.object.repeat) {
					r.labels = t.documentLabels(j, document)
					all = append(all, labelled{object.resource(), r, part})
				}
				left -= part
			}
		}
	}
	return all
}

// ofNamespaces returns the objects that a churn cycle deletes in mode `namespaces`. kube-burner deletes randomly chosen
// namespaces. The run instead deletes the objects in such namespaces.
func (j *burnJob) ofNamespaces(templates []*burnTemplate, percent int, random *rand.Rand) (all []labelled) {
	step := 1 // number of iterations that share an object and so are churned together
	for _, o := range j.objects {
		step = max(step, min(o.repeat, j.iterations))
	}
	n := max(1, percent*j.iterations/100)
	n = min(j.iterations, (n+step-1)/step*step)
	from := step * random.IntN((j.iterations-n)/step+1)
	r := labelRange{labels: map[string]string{jobLabel: j.name}, from: from, to: from + n - 1}
	for _, t := range templates {
		if t.object.runOnce && from > 0 { // only the first iteration has the object
			continue
		}
		for _, object := range t.objects {
			if !slices.ContainsFunc(all, func(l labelled) bool { return l.resource == object.resource() }) {
				all = append(all, labelled{object.resource(), r, n * t.object.replicas})
			}
		}
	}
	return all
}

// repeats adds a phase that deletes a random part of the objects and recreates them, at a regular interval.
func (b *burner) repeats(j *burnJob, c burnChurn, item *item) {
	count := 0
	p := b.phase(withSuffix(nameOf(j.name), "churn"))
	var deletions []*mapping
	var resources []string
	share := fmt.Sprintf("%d%%", min(100, max(1, c.percent)))
	for _, t := range c.churned(j) {
		count += max(1, c.percent*t.count*len(t.objects)/100)
		for document, object := range t.objects {
			deletions = append(deletions, deletion(object.resource(), selector(t.documentLabels(j, document)), c.objects, j.qps, "share", share, "order", when(c.objects, "oldest")))
			resources = append(resources, object.resource())
		}
	}
	creations := b.again(j, j.made)
	takes := atRate(count, j.qps)
	after := max(time.Second, takes+c.deleteDelay).Round(time.Second)
	every := max(time.Second, after+takes+c.delay).Round(time.Second)
	lasts := c.duration
	if lasts == 0 {
		lasts = time.Duration(c.cycles) * every
	}
	for _, a := range deletions {
		a.set("every", scenario.Duration(every).String())
	}
	for _, a := range creations {
		a.add("after", scenario.Duration(after).String(), "every", scenario.Duration(every).String())
	}
	p.add("for", length(max(lasts, after+every+time.Second)), "actions", append(deletions, creations...))
	what, instead := "the oldest %s of the %s", ""
	if !c.objects {
		what, instead = "%s of the %s, chosen at random,", " deletes whole namespaces,"
		b.lose("deletion of namespaces by the churn of job", j.name)
	}
	item.remark(p.Node, c.at(""), "every %s, "+what+" are deleted, and the missing objects are recreated %s later; kube-burner%s waits until the old ones are gone and then until the new ones are ready",
		scenario.Duration(every), share, strings.Join(distinct(resources), ", "), scenario.Duration(after), instead)
	end := b.phase(withSuffix(nameOf(j.name), "churn-end"))
	end.set("actions", b.again(j, j.made))
	until(end, distinct(j.waits), j.within+takes)
	j.churned = len(b.phases) - 1
}

// labelRange selects the objects that have the given labels and belong to a range of iterations and replicas.
type labelRange struct {
	labels   map[string]string
	from, to int // first and last iteration
	// low and high are the first and last replica, counted from 1. If low is 0, all replicas match.
	low, high int
}

// rangesOf returns the ranges that select n objects of a template, starting with object number `from`. Objects are
// numbered in the order of their creation: iteration by iteration, with the given number of replicas in each. step is
// the difference between consecutive iteration labels.
func rangesOf(from, n, replicas, step int) (all []labelRange) {
	add := func(first, last, low, high int) {
		all = append(all, labelRange{from: first * step, to: last * step, low: low, high: high})
	}
	end := from + n
	first, last := from/replicas, end/replicas
	low, high := from%replicas, end%replicas // in the first and in the last iteration; high is exclusive
	if first == last {
		add(first, first, low+1, high)
		return all
	}
	if low > 0 {
		add(first, first, low+1, replicas)
		first++
	}
	if first < last {
		add(first, last-1, 0, 0)
	}
	if high > 0 {
		add(last, last, 1, high)
	}
	return all
}

// text formats the range as a label selector.
func (r labelRange) text() string {
	parts := []string{selector(r.labels)}
	r.bounds(func(label string, low, high, least int) {
		switch {
		case low == high:
			parts = append(parts, fmt.Sprintf("%s=%d", label, low))
			return
		case low > least:
			parts = append(parts, fmt.Sprintf("%s>%d", label, low-1))
		}
		parts = append(parts, fmt.Sprintf("%s<%d", label, high+1))
	})
	return strings.Join(parts, ",")
}

// test formats the range as a CEL expression over an object's fields.
func (r labelRange) test() string {
	parts := labelTests(r.labels)
	r.bounds(func(label string, low, high, _ int) {
		if low == high {
			parts = append(parts, fmt.Sprintf(`metadata.labels[%q] == "%d"`, label, low))
			return
		}
		parts = append(parts, fmt.Sprintf("int(metadata.labels[%q]) >= %d", label, low), fmt.Sprintf("int(metadata.labels[%q]) <= %d", label, high))
	})
	return strings.Join(parts, " && ")
}

// bounds calls `use` for each label whose values the range limits. least is the smallest value that the label can have.
func (r labelRange) bounds(use func(label string, low, high, least int)) {
	use(iterationLabel, r.from, r.to, 0)
	if r.low > 0 {
		use(replicaLabel, r.low, r.high, 1)
	}
}
