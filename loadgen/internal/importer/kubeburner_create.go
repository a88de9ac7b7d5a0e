package importer

import (
	"fmt"
	"slices"
	"time"
)

// burnBatch is objects of a job that are made together.
type burnBatch struct {
	name       string
	iterations int
	group      int
	objects    []*burnObject
}

// batches are the objects of a job in the order in which they are made.
func (b *burner) batches(j *burnJob) (all []burnBatch) {
	var groups []int
	for _, o := range j.objects {
		if !slices.Contains(groups, o.group) {
			groups = append(groups, o.group)
		}
	}
	slices.Sort(groups)
	for _, g := range groups {
		name := j.name
		if len(groups) > 1 {
			name = withSuffix(nameOf(j.name), fmt.Sprintf("group-%d", g))
		}
		once := burnBatch{name: withSuffix(nameOf(name), "once"), iterations: 1, group: g}
		every := burnBatch{name: withSuffix(nameOf(name), "shared"), group: g}
		each := burnBatch{name: name, iterations: j.iterations, group: g}
		for _, o := range j.objects {
			switch {
			case o.group != g || o.replicas < 1:
			case o.runOnce:
				once.objects = append(once.objects, o)
			case o.repeat > 1:
				every.iterations = (j.iterations + o.repeat - 1) / o.repeat
				every.objects = append(every.objects, o)
			default:
				each.objects = append(each.objects, o)
			}
		}
		for _, batch := range []burnBatch{once, every, each} {
			if len(batch.objects) > 0 {
				all = append(all, batch)
			}
		}
	}
	return all
}

// createJob adds the phases of a job that creates objects.
func (b *burner) createJob(j *burnJob) {
	b.number(j)
	first := len(b.phases)
	if steps := j.sub("incrementalLoad"); steps.node != nil {
		b.steps(j, steps)
	} else {
		b.createObjects(j)
	}
	for _, o := range j.objects {
		if o.replicas < 1 {
			o.item.remark(b.topOf(first), o.at("replicas"), "%d replicas: kube-burner makes none either", o.replicas)
		}
	}
	if len(b.phases) == first {
		if !j.defines {
			j.item.remark(nil, j.at(""), "job %s: none of its objects can be made", j.name)
		}
		return
	}
	j.last = len(b.phases) - 1
	node := b.phases[first].Node
	b.createRemarks(j, node)
	b.clashes(j, node)
	b.watchers(j, first)
	b.churn(j)
}

// createObjects adds the phases in which the objects of a job are made and waited for.
func (b *burner) createObjects(j *burnJob) {
	waits := map[int][]string{} // by group
	j.made = nil
	for _, batch := range b.batches(j) {
		b.createPhase(j, batch)
		for _, o := range batch.objects {
			if c := b.waitFor(j, o); c != nil {
				waits[batch.group] = append(waits[batch.group], c...)
				j.waits = append(j.waits, c...)
			}
		}
		if last := b.lastOfGroup(j, batch); last {
			b.afterCreation(j, batch, waits[batch.group])
		}
	}
}

// lastOfGroup reports whether no batch of the same group follows.
func (b *burner) lastOfGroup(j *burnJob, batch burnBatch) bool {
	all := b.batches(j)
	last := burnBatch{}
	for _, other := range all {
		if other.group == batch.group {
			last = other
		}
	}
	return last.name == batch.name
}

// afterCreation adds the wait for objects, pauses and the removal of a group.
func (b *burner) afterCreation(j *burnJob, batch burnBatch, waits []string) {
	grouped := batch.group > 0 || slices.ContainsFunc(j.objects, func(o *burnObject) bool { return o.group > 0 })
	switch {
	case b.wait && !grouped:
		b.waits = append(b.waits, waits...)
		b.longest = max(b.longest, j.within)
	case j.wait || j.podWait:
		b.waitPhase(batch.name, waits, j.within)
	}
	if !grouped {
		return
	}
	var before, after time.Duration
	gc := false
	for _, o := range batch.objects {
		g := o.sub("group")
		before, after = max(before, g.duration("pauseBeforeGC", 0)), max(after, g.duration("pauseAfterGC", 0))
		gc = gc || g.flag("gc", false)
	}
	b.pause(withSuffix(nameOf(batch.name), "before"), before)
	if gc {
		b.removal(j, map[string]string{jobLabel: j.name, groupLabel: fmt.Sprint(batch.group)}, batch.name)
		b.pause(withSuffix(nameOf(batch.name), "after"), after)
	}
}

// createPhase adds the phase in which a batch is made.
func (b *burner) createPhase(j *burnJob, batch burnBatch) {
	var templates []*mapping
	made := burnMade{iterations: batch.iterations}
	perIteration, spread := 0, false
	for _, o := range batch.objects {
		t := b.objectTemplate(j, o, batch.iterations)
		if t == nil || b.definition(j, t, batch.iterations) {
			continue
		}
		templates = append(templates, t.at)
		made.templates = append(made.templates, t)
		perIteration += o.replicas * len(t.objects)
		spread = spread || slices.ContainsFunc(t.objects, func(m manifest) bool { return namespaced(m.kind()) && m.namespace() == "" })
	}
	if len(templates) == 0 {
		return
	}
	if total := perIteration * batch.iterations; total > maxObjects {
		b.src.fail(j.get("jobIterations"), j.field("jobIterations"), "%d objects (a load makes at most %d)", total, maxObjects)
		return
	}
	phase := b.phase(batch.name)
	load := newMapping()
	name := phaseName(phase)
	load.set("name", name)
	load.set("kind", "objects")
	total := perIteration * batch.iterations
	takes := b.pace(j, batch, load, perIteration, total)
	j.takes = max(j.takes, takes)
	if batch.iterations > 1 {
		load.set("iterations", batch.iterations)
	}
	if spread && j.inNamespaces {
		made.namespaces = b.spread(j, batch, load)
	}
	j.made = append(j.made, made)
	if name != j.name {
		load.set("vars", flow("JobName", j.name))
	}
	if b.options.OwnCluster {
		load.set("placement", "none")
	}
	load.set("templates", templates)
	phase.set("load", []*mapping{load})
	phase.set("until", "objectsMade")
	phase.set("within", length(max(b.timeout, 2*takes)))
	if b.lastOfGroup(j, batch) {
		b.pause(batch.name, j.delay)
	}
	if batch.iterations != j.iterations && !j.begins(batch) {
		j.item.remark(phase.Node, batch.objects[0].at(""), "these objects are made before the others of job %s, and not between them", j.name)
	}
	if j.flag("verifyObjects", true) && j.flag("errorOnVerify", true) {
		g := newMapping()
		g.set("name", unique(withSuffix(name, "made"), b.gateSet))
		g.set("objective", "achieved")
		g.set("load", name)
		g.set("min", "100%")
		g.set("over", []string{name})
		b.gates = append(b.gates, g)
	}
}

// begins reports whether the objects of a batch are each made once, and before all others of their group.
func (j *burnJob) begins(batch burnBatch) bool {
	left := len(batch.objects)
	for _, o := range j.objects {
		switch {
		case o.group != batch.group || o.replicas < 1:
		case !slices.Contains(batch.objects, o):
			return false
		default:
			left--
		}
		if left == 0 {
			break
		}
	}
	return batch.iterations == 1
}

// pace sets the rate of a load and gives the time that its objects take.
func (b *burner) pace(j *burnJob, batch burnBatch, load *mapping, perIteration, total int) time.Duration {
	takes := atRate(total, j.qps)
	if j.delay == 0 || batch.iterations < 2 {
		load.set("rate", perSecond(j.qps))
		return takes
	}
	// The bucket refills while an iteration waits: what it holds goes at once, the rest at the rate.
	rest := time.Duration(float64(max(0, perIteration-j.burst)) / j.qps * float64(time.Second))
	every := j.delay + rest
	shape := load.set("shape", flow("kind", "burst", "burst", perIteration, "every", length(every)))
	if rest > 0 || j.delay.Seconds()*j.qps < float64(min(perIteration, j.burst)) {
		j.item.remark(shape, j.at("jobIterationDelay"), "each iteration's %d objects go at once, each %s; kube-burner sends them at %g/s between pauses of %s",
			perIteration, every, j.qps, j.delay)
	}
	if perIteration > 1000 {
		load.set("maxInFlight", perIteration)
	}
	return every * time.Duration(batch.iterations+1)
}

// atRate is the time that so many requests take.
func atRate(count int, rate float64) time.Duration {
	return time.Duration(float64(count) / rate * float64(time.Second))
}

// maxNamespaces of a load.
const maxNamespaces = 1000

// spread sets the namespaces of a batch, and returns how many there are.
func (b *burner) spread(j *burnJob, batch burnBatch, load *mapping) int {
	repeat := batch.objects[0].repeat
	count := (j.iterations + j.perNamespace - 1) / j.perNamespace
	namespaces := min(count, batch.iterations, maxNamespaces)
	node := load.Node
	if namespaces > 1 {
		node = load.set("namespaces", namespaces)
	}
	switch {
	case count > maxNamespaces:
		j.item.remark(node, j.at("namespacedIterations"), "kube-burner makes %d namespaces; a load has at most %d", count, maxNamespaces)
	case repeat > 1 && namespaces > 1:
		batch.objects[0].item.remark(node, batch.objects[0].at("repeatEveryNIterations"), "kube-burner puts these into each %d. namespace", repeat)
	case batch.iterations == j.iterations && count*j.perNamespace != j.iterations && count > 1:
		j.item.remark(node, j.at("iterationsPerNamespace"), "the iterations are spread over the namespaces evenly; kube-burner leaves the last one with fewer")
	}
	return namespaces
}
