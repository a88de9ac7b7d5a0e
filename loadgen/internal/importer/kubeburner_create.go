package importer

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// burnBatch is the set of objects of a job with the same group id (default: 0). The job creates these objects together.
type burnBatch struct {
	name              string
	group             int
	objects           []*burnObject
	templates         []*burnTemplate
	iterations, total int  // total is the number of objects
	spread            bool // whether some objects name no namespace, so that they are spread over the job's namespaces
}

// batches returns the batches of a job in the order in which kube-burner creates them.
func (b *burner) batches(j *burnJob) (all []burnBatch) {
	groups := map[int][]*burnObject{}
	for _, o := range j.objects {
		groups[o.group] = append(groups[o.group], o)
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		objects := slices.DeleteFunc(groups[g], func(o *burnObject) bool { return o.replicas < 1 })
		batch := burnBatch{name: j.name, group: g, objects: objects, iterations: j.iterations}
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

// every returns n if the job creates the object in every nth iteration, beginning with the first. iterations is the
// number of iterations of the job.
func (o *burnObject) every(iterations int) int {
	if o.runOnce {
		return iterations
	}
	return min(o.repeat, iterations)
}

// times returns the number of iterations, out of the given iterations of the job, that create the object.
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
	if b.waitsEach(j) && j.iterations > 1 && !b.apart(j) {
		j.item.remark(node, j.at("podWait"), "the run waits for all pods only at the end, not after each iteration, because a wait after each is supported for up to %d iterations", maxEach)
	}
	if !j.verified() {
		addComment(node, "No gate judges whether all objects were created, because errorOnVerify or verifyObjects is off.")
	}
	b.labelGroup(j, node)
	if j.has("objectDelay") || j.has("objectWait") {
		addComment(node, "objectDelay and objectWait have no effect in a create job.")
	}
	b.watchers(j, first)
	b.churn(j)
}

// verified reports whether kube-burner fails if a job has not created all its objects.
func (j *burnJob) verified() bool {
	return j.flag("verifyObjects", true) && j.flag("errorOnVerify", true)
}

// createObjects adds the phases that create the objects of a job and wait for them.
func (b *burner) createObjects(j *burnJob) {
	j.made, j.each = nil, nil
	for _, batch := range b.batches(j) {
		b.convertTemplates(j, &batch)
		var waits []string
		switch {
		case len(batch.templates) == 0:
		case b.apart(j):
			waits = b.createEach(j, batch)
		default:
			p, load := b.createPhase(j, batch.name, batch, nil)
			b.pace(j, load, batch)
			p.set("within", length(max(b.timeout, 2*j.takes)))
			b.pause(batch.name, j.delay)
			waits = b.waitsFor(batch)
		}
		if len(batch.templates) > 0 {
			j.made = append(j.made, batch)
		}
		j.waits = append(j.waits, waits...)
		b.afterCreation(j, batch, waits)
	}
}

// convertTemplates converts the templates of a batch. It omits objects that the run must create before the first phase.
func (b *burner) convertTemplates(j *burnJob, batch *burnBatch) {
	for _, o := range batch.objects {
		if t := b.objectTemplate(j, o); t != nil && !b.definition(j, t) {
			batch.templates = append(batch.templates, t)
			batch.total += t.count * len(t.objects)
			batch.spread = batch.spread || slices.ContainsFunc(t.objects, manifest.spread)
		}
	}
	if batch.total > maxObjects {
		j.fail("jobIterations", "%d objects (a load makes at most %d)", batch.total, maxObjects)
		batch.templates = nil
	}
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
func (b *burner) createPhase(j *burnJob, title string, batch burnBatch, iteration *int) (phase, load *mapping) {
	phase = b.phase(title)
	name := phaseName(phase)
	load = block("name", name, "kind", "objects", "rate", perSecond(j.qps))
	b.spread(j, batch, load)
	if iteration != nil {
		load.add("fromIteration", *iteration, "toIteration", *iteration+1)
	}
	load.add("vars", when(name != j.name, flow("JobName", j.name)), "placement", when(b.options.OwnCluster, "none"), "templates", b.templatesOf(batch))
	phase.add("load", []*mapping{load}, "until", "objectsMade", "within", length(b.timeout))
	if j.verified() {
		b.gates = append(b.gates, block("name", unique(withSuffix(name, "made"), b.gateSet), "objective", "achieved", "load", name, "min", "100%", "over", []string{name}))
	}
	return phase, load
}

// templatesOf returns the templates for a load or an action. Each template node can stand at only one place in the
// scenario, so the second and later calls return copies.
func (b *burner) templatesOf(batch burnBatch) (all []*mapping) {
	for _, t := range batch.templates {
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
func (m burnBatch) perIteration() (count int, irregular bool) {
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
func (b *burner) pace(j *burnJob, load *mapping, batch burnBatch) {
	if j.delay == 0 || j.iterations < 2 {
		j.takes = max(j.takes, atRate(batch.total, j.qps))
		return
	}
	// kube-burner's rate limiter, a token bucket, refills during the delay. kube-burner then creates one object per
	// token immediately, and the remaining objects at the job's rate.
	perIteration, irregular := batch.perIteration()
	rest := atRate(max(0, perIteration-j.burst), j.qps)
	every := j.delay + rest
	load.replace("rate", "shape", flow("kind", "burst", "burst", perIteration, "every", length(every)))
	what := "each iteration's %d objects are created at once, an iteration every %s; kube-burner creates them at %g/s between pauses of %s"
	if irregular {
		what = "%d objects are created at once every %s, whatever the size of an iteration; kube-burner creates an iteration's objects at %g/s between pauses of %s"
	}
	if irregular || rest > 0 || j.delay.Seconds()*j.qps < float64(min(perIteration, j.burst)) {
		j.item.remark(load.key("shape"), j.at("jobIterationDelay"), what, perIteration, every, j.qps, j.delay)
	}
	load.add("maxInFlight", when(perIteration > 1000, perIteration))
	j.takes = max(j.takes, every*time.Duration((batch.total+perIteration-1)/perIteration+1))
}

// atRate returns the time that count requests take. rate is in requests per second.
func atRate(count int, rate float64) time.Duration {
	return time.Duration(float64(count) / rate * float64(time.Second))
}

// watchers converts each entry in the job's watchers to a load of watches, in the phase whose index is `first`.
func (b *burner) watchers(j *burnJob, first int) {
	var loads []*mapping
	for i, w := range j.list("watchers") {
		item := b.item()
		kind, apiVersion := w.text("kind", ""), w.text("apiVersion", "v1")
		l := block("name", unique(withSuffix(nameOf(j.name), fmt.Sprintf("watch-%d", i+1)), b.names), "kind", "watches", "resource", builtin.ResourceOf(apiVersion, kind),
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

// maxEach is the maximum number of iterations that become separate phases.
const maxEach = 20

// apart reports whether each iteration of a job must become a separate phase, because one load cannot express the
// waits, pauses or hooks between iterations.
func (b *burner) apart(j *burnJob) bool {
	if j.kind != "create" || j.iterations < 2 || j.iterations > maxEach || j.has("incrementalLoad") {
		return false
	}
	irregular := func(o *burnObject) bool { return o.replicas > 0 && o.every(j.iterations) > 1 }
	hooked := slices.ContainsFunc(j.list("hooks"), func(h *fields) bool { return h.text("when", "") == "onEachIteration" })
	return b.waitsEach(j) || hooked || j.delay > 0 && slices.ContainsFunc(j.objects, irregular)
}

// waitsEach reports whether kube-burner waits for the objects of an iteration before it starts the next one.
func (b *burner) waitsEach(j *burnJob) bool { return j.podWait && !j.wait && !b.wait && !j.grouped() }

// createEach adds a phase for each iteration, with the waits and pauses between iterations. It returns the conditions
// that kube-burner waits for.
func (b *burner) createEach(j *burnJob, batch burnBatch) (waits []string) {
	quiet := b.quiet
	for i := range j.iterations {
		name := withSuffix(nameOf(batch.name), fmt.Sprint(i+1))
		if these, n := batch.in(i); n > 0 {
			p, _ := b.createPhase(j, name, these, &i)
			takes := atRate(n, j.qps)
			j.takes = max(j.takes, takes)
			p.set("within", length(max(b.timeout, 2*takes)))
		} else {
			b.phase(name).set("for", length(0))
		}
		j.each = append(j.each, len(b.phases)-1)
		if i == 0 {
			waits = b.waitsFor(batch)
		}
		// kube-burner waits once in each namespace.
		waited := j.inNamespaces && (i%j.perNamespace != 0 || !batch.spread && i > 0)
		if b.waitsEach(j) && !waited {
			b.waitPhase(name, waits, j.within)
		}
		b.pause(name, j.delay)
		b.quiet = true // remarks on the first iteration apply to all
	}
	b.quiet = quiet
	return waits
}

// in returns the templates in m from which one iteration creates objects, and the number of these objects.
func (m burnBatch) in(iteration int) (these burnBatch, count int) {
	these = m
	these.templates = nil
	for _, t := range m.templates {
		if iteration%t.object.every(m.iterations) == 0 {
			these.templates = append(these.templates, t)
			count += t.object.replicas * len(t.objects)
		}
	}
	return these, count
}

// maxSteps is the maximum number of steps of an incremental load. Each step becomes a phase.
const maxSteps = 50

// steps adds the phases of a job with an incremental load. Such a job runs several times with an increasing number of
// iterations, and removes its objects after each time (pkg/burner/incremental.go).
func (b *burner) steps(j *burnJob, f *fields) {
	whole := j.iterations
	ends := b.stepEnds(j, f)
	if len(ends) > maxSteps {
		j.item.remark(b.lastPhase(), f.at(""), "job %s: only its first %d steps are imported", j.name, maxSteps)
		ends = ends[:maxSteps]
	}
	for n, end := range ends {
		b.quiet = n > 0
		j.iterations = end
		before := len(b.phases)
		b.createObjects(j)
		if len(b.phases) == before {
			break
		}
		if script := f.text("healthCheckScript", ""); strings.Contains(script, "://") {
			j.item.remark(b.lastPhase(), f.at("healthCheckScript"), "%s is not downloaded: save it locally, and name that file", script)
		} else if script != "" {
			b.addHook(b.phases[len(b.phases)-1], "after", append([]string{"sh"}, strings.Fields(script)...))
		}
		b.removal(j, map[string]string{jobLabel: j.name}, j.name)
		b.pause(withSuffix(nameOf(j.name), "step"), f.duration("stepDelay", 0))
	}
	b.quiet = false
	j.iterations = whole
}

// stepEnds returns the number of iterations of each step of an incremental load.
func (b *burner) stepEnds(j *burnJob, f *fields) []int {
	start, total := f.integer("startIterations", 0), f.integer("totalIterations", 0)
	if start <= 0 {
		start = j.iterations
	}
	total = max(total, start)
	if total > maxObjects {
		f.fail("totalIterations", "%d iterations (a load makes at most %d objects)", total, maxObjects)
		return nil
	}
	pattern := f.sub("pattern")
	linear, exponential := pattern.sub("linear"), pattern.sub("exponential")
	kind := pattern.text("type", "linear")
	pattern.check(kind == "linear" || kind == "exponential", "type", "kube-burner has no pattern %q (linear or exponential)", kind)
	increase := linearIncrease(start, total, linear.integer("stepSize", 1), linear.integer("minSteps", 0))
	if kind == "exponential" {
		base, most, warmup := exponential.number("base", 0), exponential.integer("maxIncrease", 0), exponential.integer("warmupSteps", 0)
		increase = exponentialIncrease(start, total, base, most, warmup)
	}
	return endsOf(start, total, increase)
}

// endsOf returns the number of iterations of each step of an incremental load. increase returns the growth before step
// n.
func endsOf(start, total int, increase func(n int) int) []int {
	ends := []int{start}
	for n := 2; ends[len(ends)-1] < total && len(ends) <= maxSteps; n++ {
		ends = append(ends, min(total, ends[len(ends)-1]+increase(n)))
	}
	return ends
}

// linearIncrease returns the function `increase` for endsOf. The number of iterations grows by `step` before each step,
// or by less if `step` gives fewer than `least` steps from start to total.
func linearIncrease(start, total, step, least int) func(n int) int {
	step = max(1, step)
	if steps := (total - start + step - 1) / step; least > 0 && steps < least {
		step = max(1, (total-start+least-1)/least)
	}
	return func(int) int { return step }
}

// exponentialIncrease returns the function `increase` for endsOf. The number of iterations grows by `start` before the
// warm-up steps, and before later steps by `start` times a rising power of base. If `most` is positive, it limits the
// growth before these later steps.
func exponentialIncrease(start, total int, base float64, most, warmup int) func(n int) int {
	if base <= 0 {
		base = 2
	}
	return func(n int) int {
		if warmup > 0 && n <= warmup {
			return start
		}
		increase := max(1, int(min(math.Pow(base, float64(n-max(0, warmup))), float64(total)))*start)
		if most > 0 {
			increase = min(increase, most)
		}
		return increase
	}
}
