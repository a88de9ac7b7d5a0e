package importer

import (
	"fmt"
	"slices"
)

// maxEach is the maximum number of iterations that become separate phases.
const maxEach = 20

// apart reports whether each iteration of a job must become a separate phase, because one load cannot express the
// waits, pauses or hooks between iterations.
func (b *burner) apart(j *burnJob) bool {
	if j.kind != "create" || j.iterations < 2 || j.iterations > maxEach || j.has("incrementalLoad") {
		return false
	}
	irregular := func(o *burnObject) bool { return o.replicas > 0 && o.every(j.iterations) > 1 }
	return b.waitsEach(j) || j.runsEach() || j.delay > 0 && slices.ContainsFunc(j.objects, irregular)
}

// waitsEach reports whether kube-burner waits for the objects of an iteration before it starts the next one.
func (b *burner) waitsEach(j *burnJob) bool { return j.podWait && !j.wait && !b.wait && !j.grouped() }

// runsEach reports whether a job has a hook that runs in each iteration.
func (j *burnJob) runsEach() bool {
	return slices.ContainsFunc(j.list("hooks"), func(h *fields) bool { return h.text("when", "") == "onEachIteration" })
}

// createEach adds a phase for each iteration, with the waits and pauses between iterations. It returns the conditions
// that kube-burner waits for.
func (b *burner) createEach(j *burnJob, batch burnBatch, made burnMade) (waits []string) {
	quiet := b.quiet
	for i := range j.iterations {
		name := withSuffix(nameOf(batch.name), fmt.Sprint(i+1))
		if these, n := made.in(i); n > 0 {
			p, _ := b.createPhase(j, name, these, &i)
			takes := atRate(n, j.qps)
			j.takes = max(j.takes, takes)
			p.set("within", length(max(b.timeout, 2*takes)))
		} else {
			b.phase(name).set("for", length(0))
		}
		j.each = append(j.each, len(b.phases)-1)
		if i == 0 {
			waits = b.waitsOf(batch)
		}
		// kube-burner waits once in each namespace.
		waited := j.inNamespaces && (i%j.perNamespace != 0 || !made.spread && i > 0)
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
func (m burnMade) in(iteration int) (these burnMade, count int) {
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
