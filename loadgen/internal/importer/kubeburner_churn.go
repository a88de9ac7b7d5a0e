package importer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// burnMade describes the objects of one batch: the templates and the number of iterations.
type burnMade struct {
	templates         []*burnTemplate
	iterations, total int
	spread            bool // some objects name no namespace, and are spread over the job's namespaces
}

type burnChurn struct {
	*fields
	cycles, percent              int
	duration, delay, deleteDelay time.Duration
	objects                      bool // mode "objects"; otherwise mode "namespaces"
}

// churns reports whether a job configures churn.
func churns(job *fields) bool {
	c := job.sub("churnConfig")
	return c.integer("cycles", 0) > 0 || c.duration("duration", 0) > 0
}

// maxCycles is the maximum number of churn cycles that become separate phases.
const maxCycles = 10

// churn adds the phases that delete and recreate a part of a job's objects (pkg/burner/create.go). In mode objects,
// kube-burner replaces the oldest objects of each template. In mode namespaces, it replaces all objects in some
// namespaces.
func (b *burner) churn(j *burnJob) {
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
	spread := slices.ContainsFunc(j.made, func(m burnMade) bool { return m.spread })
	switch {
	case mode != "objects" && mode != "namespaces":
		item.remark(last, c.at("mode"), "no churn: kube-burner knows the modes namespaces and objects, and does nothing in mode %q", mode)
	case j.has("incrementalLoad"):
		addComment(last, "kube-burner finds nothing to churn: the last step has removed its objects.")
	case !c.objects && !spread && j.inNamespaces:
		addComment(last, "kube-burner skips the churn: the job has no namespaces.")
	case !c.objects && (!j.inNamespaces || j.perNamespace > 1):
		item.remark(last, c.at("mode"), "no churn: kube-burner deletes namespaces of several iterations here, and recreates different objects in them")
	case c.cycles > 0 && c.cycles <= maxCycles:
		b.cycles(j, c, item)
	default:
		b.repeats(j, c, item)
	}
}

// again returns an action that recreates the deleted objects of a job.
func (b *burner) again(j *burnJob, m burnMade) *mapping {
	a := newMapping()
	a.set("kind", "create")
	a.set("onlyMissing", true)
	a.set("rate", perSecond(j.qps))
	b.spread(j, m, a)
	a.set("vars", flow("JobName", j.name))
	if b.options.OwnCluster {
		a.set("placement", "none")
	}
	a.set("templates", b.templatesOf(m))
	return a
}

// labelled selects objects to delete by their labels. count is the number of these objects.
type labelled struct {
	resource string
	selector labelRange
	count    int
}

// cycles adds two phases for each churn cycle: one that deletes objects and one that recreates them.
func (b *burner) cycles(j *burnJob, c burnChurn, item *item) {
	first := len(b.phases)
	random := rand.New(rand.NewPCG(1, uint64(len(b.spans))))
	waits := j.waits
	if !c.objects && (!j.wait || b.wait) {
		waits = nil
	}
	for n := range c.cycles {
		churned := j.oldest(c, n)
		if !c.objects {
			churned = j.ofNamespaces(c, random)
		}
		name := withSuffix(nameOf(j.name), fmt.Sprintf("churn-%d", n+1))
		p := b.phase(name)
		var actions []*mapping
		var gone []string
		count := 0
		for _, l := range churned {
			a := newMapping()
			a.set("kind", "delete")
			a.set("target", flow("resource", l.resource, "labelSelector", l.selector.text()))
			if c.objects {
				a.set("propagation", "Foreground")
			}
			a.set("rate", perSecond(j.qps))
			actions = append(actions, a)
			count += l.count
			if celName.MatchString(l.resource) {
				gone = append(gone, fmt.Sprintf("count(%s where %s) == 0", l.resource, l.selector.test()))
			} else if n == 0 {
				item.remark(p.Node, c.at(""), "the run does not wait for deletions of %s: CEL cannot read this name", l.resource)
			}
		}
		p.set("actions", actions)
		if !c.objects && j.hasPods() {
			gone = append(gone, fmt.Sprintf("count(pods where %s) == 0", churned[0].selector.test()))
		}
		endOfDeletion(p, gone, true, b.timeout+atRate(count, j.qps))
		b.pause(name, c.deleteDelay)
		p = b.phase(withSuffix(name, "again"))
		actions = nil
		for _, m := range j.made {
			if slices.ContainsFunc(m.templates, func(t *burnTemplate) bool { return !c.objects || t.object.churns() }) {
				actions = append(actions, b.again(j, m))
			}
		}
		p.set("actions", actions)
		endOfDeletion(p, slices.Compact(slices.Sorted(slices.Values(waits))), true, j.within+atRate(count, j.qps))
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

// churns reports whether churn may replace the objects of this entry.
func (o *burnObject) churns() bool { return o.flag("churn", true) }

// oldest returns the objects that a churn cycle deletes in mode objects: a percentage of the objects of each template,
// the oldest first. cycle is the number of the cycle, from 0.
func (j *burnJob) oldest(c burnChurn, cycle int) (all []labelled) {
	for _, m := range j.made {
		for _, t := range m.templates {
			total := t.object.replicas * t.object.times(j, m.iterations)
			n := min(total, max(1, c.percent*total/100))
			if !t.object.churns() {
				continue
			}
			for document, object := range t.objects {
				of := map[string]string{jobLabel: j.name, indexLabel: fmt.Sprint(t.object.index + document)}
				from := cycle * n % total
				for left := n; left > 0; from = 0 {
					part := min(left, total-from)
					for _, r := range rangesOf(from, part, t.object.replicas, t.object.repeat) {
						r.labels = of
						all = append(all, labelled{resourceOf(object.apiVersion(), object.kind()), r, part})
					}
					left -= part
				}
			}
		}
	}
	return all
}

// ofNamespaces returns the objects that a churn cycle deletes in mode namespaces. kube-burner deletes randomly chosen
// namespaces. The run instead deletes the objects in such namespaces.
func (j *burnJob) ofNamespaces(c burnChurn, random *rand.Rand) (all []labelled) {
	step := 1 // number of iterations that share an object and so are churned together
	for _, o := range j.objects {
		step = max(step, min(o.repeat, j.iterations))
	}
	n := max(1, c.percent*j.iterations/100)
	n = min(j.iterations, (n+step-1)/step*step)
	from := step * random.IntN((j.iterations-n)/step+1)
	r := labelRange{labels: map[string]string{jobLabel: j.name}, from: from, to: from + n - 1}
	for _, m := range j.made {
		for _, t := range m.templates {
			if t.object.runOnce && from > 0 { // only the first iteration has the object
				continue
			}
			for _, object := range t.objects {
				resource := resourceOf(object.apiVersion(), object.kind())
				if !slices.ContainsFunc(all, func(l labelled) bool { return l.resource == resource }) {
					all = append(all, labelled{resource, r, n * t.object.replicas})
				}
			}
		}
	}
	return all
}

// hasPods reports whether the job creates controllers whose pods have the labels of the controller.
func (j *burnJob) hasPods() bool {
	for _, m := range j.made {
		for _, t := range m.templates {
			if slices.ContainsFunc(t.objects, func(o manifest) bool { return len(labelPaths(o)) > 1 }) {
				return true
			}
		}
	}
	return false
}

// repeats adds a phase that deletes a random part of the objects and recreates them, at a regular interval.
func (b *burner) repeats(j *burnJob, c burnChurn, item *item) {
	count := 0
	p := b.phase(withSuffix(nameOf(j.name), "churn"))
	var deletions, creations []*mapping
	var resources []string
	for _, m := range j.made {
		for _, t := range m.templates {
			if c.objects && !t.object.churns() {
				continue
			}
			total := t.object.replicas * t.object.times(j, m.iterations) * len(t.objects)
			count += max(1, c.percent*total/100)
			for document, object := range t.objects {
				of := map[string]string{jobLabel: j.name, indexLabel: fmt.Sprint(t.object.index + document)}
				resource := resourceOf(object.apiVersion(), object.kind())
				a := newMapping()
				a.set("kind", "delete")
				target := flow("resource", resource, "labelSelector", selector(of), "share", fmt.Sprintf("%d%%", min(100, max(1, c.percent))))
				a.set("target", target)
				if c.objects {
					target.set("order", "oldest")
					a.set("propagation", "Foreground")
				}
				a.set("rate", perSecond(j.qps))
				deletions = append(deletions, a)
				resources = append(resources, resource)
			}
		}
		creations = append(creations, b.again(j, m))
	}
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
		a.set("after", scenario.Duration(after).String())
		a.set("every", scenario.Duration(every).String())
	}
	p.set("for", length(max(lasts, after+every+time.Second)))
	p.set("actions", append(deletions, creations...))
	what := fmt.Sprintf("%d%% of the %s", min(100, max(1, c.percent)), strings.Join(slices.Compact(slices.Sorted(slices.Values(resources))), ", "))
	instead := ""
	if c.objects {
		what = "the oldest " + what
	} else {
		what, instead = what+", chosen at random,", " deletes whole namespaces,"
	}
	item.remark(p.Node, c.at(""), "every %s, %s are deleted, and the missing objects are recreated %s later; kube-burner%s waits until the old ones are gone and then until the new ones are ready",
		scenario.Duration(every), what, scenario.Duration(after), instead)
	end := b.phase(withSuffix(nameOf(j.name), "churn-end"))
	creations = nil
	for _, m := range j.made {
		creations = append(creations, b.again(j, m))
	}
	end.set("actions", creations)
	endOfDeletion(end, slices.Compact(slices.Sorted(slices.Values(j.waits))), true, j.within+takes)
	j.churned = len(b.phases) - 1
}
