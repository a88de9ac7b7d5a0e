package importer

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// burnBatch is a set of objects that a job creates together: those with the same group id. The default group id is 0.
type burnBatch struct {
	name    string
	group   int
	objects []*burnObject
}

// batches returns the batches of a job in the order in which kube-burner creates them.
func (b *burner) batches(j *burnJob) (all []burnBatch) {
	groups := map[int][]*burnObject{}
	for _, o := range j.objects {
		groups[o.group] = append(groups[o.group], o)
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		batch := burnBatch{j.name, g, slices.DeleteFunc(groups[g], func(o *burnObject) bool { return o.replicas < 1 })}
		if len(groups) > 1 {
			batch.name = withSuffix(nameOf(j.name), fmt.Sprintf("group-%d", g))
		}
		if len(batch.objects) > 0 {
			all = append(all, batch)
		}
	}
	return all
}

// grouped reports whether a job creates its objects in several groups, one after another.
func (j *burnJob) grouped() bool {
	return slices.ContainsFunc(j.objects, func(o *burnObject) bool { return o.group > 0 })
}

// every returns n if every nth iteration, beginning with the first, creates the object. iterations is the number of
// iterations of the job.
func (o *burnObject) every(iterations int) int {
	if o.runOnce {
		return iterations
	}
	return min(o.repeat, iterations)
}

// times returns in how many iterations the job creates the object. iterations is the number of iterations of the job.
func (o *burnObject) times(iterations int) int {
	every := o.every(iterations)
	return (iterations + every - 1) / every
}

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
			o.item.remark(b.topOf(first), o.at("replicas"), "%d replicas: no object is created, as in kube-burner", o.replicas)
		}
	}
	if len(b.phases) == first {
		if !j.defines {
			j.item.remark(nil, j.at(""), "job %s: none of its objects can be created", j.name)
		}
		return
	}
	j.last = len(b.phases) - 1
	node := b.phases[first].Node
	b.createRemarks(j, node)
	b.watchers(j, first)
	b.churn(j)
}

// createObjects adds the phases that create the objects of a job and wait for them.
func (b *burner) createObjects(j *burnJob) {
	j.made, j.each = nil, nil
	for _, batch := range b.batches(j) {
		made := b.madeOf(j, batch)
		var waits []string
		switch {
		case len(made.templates) == 0:
		case b.apart(j):
			waits = b.createEach(j, batch, made)
		default:
			p, load := b.createPhase(j, batch.name, made, nil)
			b.pace(j, load, made)
			p.set("within", length(max(b.timeout, 2*j.takes)))
			b.pause(batch.name, j.delay)
			waits = b.waitsOf(batch)
		}
		if len(made.templates) > 0 {
			j.made = append(j.made, made)
		}
		j.waits = append(j.waits, waits...)
		b.afterCreation(j, batch, waits)
	}
}

// waitsOf returns the conditions that kube-burner waits for after it has created the objects of a batch.
func (b *burner) waitsOf(batch burnBatch) (waits []string) {
	for _, o := range batch.objects {
		waits = append(waits, b.waitFor(o)...)
	}
	return waits
}

// madeOf converts the templates of a batch. It leaves out objects that the run must create before the first phase.
func (b *burner) madeOf(j *burnJob, batch burnBatch) burnMade {
	made := burnMade{iterations: j.iterations}
	for _, o := range batch.objects {
		t := b.objectTemplate(j, o)
		if t == nil || b.definition(j, t) {
			continue
		}
		made.templates = append(made.templates, t)
		made.total += t.count * len(t.objects)
		made.spread = made.spread || slices.ContainsFunc(t.objects, manifest.spread)
	}
	if made.total > maxObjects {
		j.fail("jobIterations", "%d objects (a load makes at most %d)", made.total, maxObjects)
		made.templates = nil
	}
	return made
}

// afterCreation adds the phases that follow the creation of a batch: the wait for its objects, pauses, and the deletion
// of the objects of a group.
func (b *burner) afterCreation(j *burnJob, batch burnBatch, waits []string) {
	switch {
	case b.wait && !j.grouped():
		b.waits = append(b.waits, waits...)
		b.longest = max(b.longest, j.within)
	case j.wait || j.podWait && (j.grouped() || !b.apart(j)):
		b.waitPhase(batch.name, waits, j.within)
	}
	if !j.grouped() {
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

// createPhase adds a phase with a load that creates the objects of one iteration. If iteration is nil, the load creates
// the objects of all iterations.
func (b *burner) createPhase(j *burnJob, title string, made burnMade, iteration *int) (phase, load *mapping) {
	phase = b.phase(title)
	name := phaseName(phase)
	load = block("name", name, "kind", "objects", "rate", perSecond(j.qps))
	b.spread(j, made, load)
	if iteration != nil {
		load.add("fromIteration", *iteration, "toIteration", *iteration+1)
	}
	load.add("vars", when(name != j.name, flow("JobName", j.name)), "placement", b.placement(), "templates", b.templatesOf(made))
	phase.add("load", []*mapping{load}, "until", "objectsMade", "within", length(b.timeout))
	if j.flag("verifyObjects", true) && j.flag("errorOnVerify", true) {
		b.gates = append(b.gates, block("name", unique(withSuffix(name, "made"), b.gateSet), "objective", "achieved", "load", name, "min", "100%", "over", []string{name}))
	}
	return phase, load
}

// templatesOf returns the templates for a load or an action. Each template node can stand at only one place in the
// scenario, so the second and later calls return copies.
func (b *burner) templatesOf(made burnMade) (all []*mapping) {
	for _, t := range made.templates {
		if !t.placed {
			t.placed = true
			all = append(all, t.at)
			continue
		}
		n := block("replicas", t.at.value("replicas"), "everyIterations", t.at.value("everyIterations"), "vars", t.at.value("vars"))
		b.template(n, t.text.file, t.text.text)
		all = append(all, n)
	}
	return all
}

// perIteration returns the number of objects that every iteration creates, at least 1. irregular reports whether some
// iterations create additional objects.
func (m burnMade) perIteration() (count int, irregular bool) {
	for _, t := range m.templates {
		if n := t.object.replicas * len(t.objects); t.object.every(m.iterations) == 1 {
			count += n
		} else {
			irregular = true
		}
	}
	return max(count, 1), irregular
}

// pace estimates how long a load of all iterations takes. If the job has a delay between iterations, pace also changes
// the load to bursts.
func (b *burner) pace(j *burnJob, load *mapping, made burnMade) {
	takes := atRate(made.total, j.qps)
	defer func() { j.takes = max(j.takes, takes) }()
	if j.delay == 0 || j.iterations < 2 {
		return
	}
	// kube-burner's rate limiter, a token bucket, refills during the delay. kube-burner then creates one object per
	// token immediately, and the remaining objects at the job's rate.
	perIteration, irregular := made.perIteration()
	rest := atRate(max(0, perIteration-j.burst), j.qps)
	every := j.delay + rest
	load.replace("rate", "shape", flow("kind", "burst", "burst", perIteration, "every", length(every)))
	shape := load.key("shape")
	switch {
	case irregular:
		j.item.remark(shape, j.at("jobIterationDelay"), "%d objects are created at once every %s, whatever the size of an iteration; kube-burner creates an iteration's objects at %g/s between pauses of %s",
			perIteration, every, j.qps, j.delay)
	case rest > 0 || j.delay.Seconds()*j.qps < float64(min(perIteration, j.burst)):
		j.item.remark(shape, j.at("jobIterationDelay"), "each iteration's %d objects are created at once, an iteration every %s; kube-burner creates them at %g/s between pauses of %s",
			perIteration, every, j.qps, j.delay)
	}
	if perIteration > 1000 {
		load.set("maxInFlight", perIteration)
	}
	takes = every * time.Duration((made.total+perIteration-1)/perIteration+1)
}

// atRate returns the time that count requests take. rate is in requests per second.
func atRate(count int, rate float64) time.Duration {
	return time.Duration(float64(count) / rate * float64(time.Second))
}
