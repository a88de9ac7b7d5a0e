package importer

import (
	"math"
	"strings"
)

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
		b.healthCheck(j, f)
		b.removal(j, map[string]string{jobLabel: j.name}, j.name)
		b.pause(withSuffix(nameOf(j.name), "step"), f.duration("stepDelay", 0))
	}
	b.quiet = false
	j.iterations = whole
}

// healthCheck adds the job's health check script as a hook after the latest phase.
func (b *burner) healthCheck(j *burnJob, f *fields) {
	script := f.text("healthCheckScript", "")
	switch {
	case script == "":
	case strings.Contains(script, "://"):
		j.item.remark(b.lastPhase(), f.at("healthCheckScript"), "%s is not downloaded: save it locally, and name that file", script)
	default:
		b.addHook(b.phases[len(b.phases)-1], "after", append([]string{"sh"}, strings.Fields(script)...))
	}
}

// stepEnds returns the number of iterations of each step.
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
	if kind == "exponential" {
		return exponentialEnds(start, total, exponential.number("base", 0), exponential.integer("maxIncrease", 0), exponential.integer("warmupSteps", 0))
	}
	return linearEnds(start, total, linear.integer("stepSize", 1), linear.integer("minSteps", 0))
}

// linearEnds returns the number of iterations of each step. The numbers go from start to total and differ by step. If
// that gives fewer than least steps, they differ by less.
func linearEnds(start, total, step, least int) []int {
	step = max(1, step)
	if steps := (total - start + step - 1) / step; least > 0 && steps < least {
		step = max(1, (total-start+least-1)/least)
	}
	ends := []int{start}
	for last := start; last < total && len(ends) <= maxSteps; {
		last = min(total, last+step)
		ends = append(ends, last)
	}
	return ends
}

// exponentialEnds returns the number of iterations of each step, from start to total. In the warm-up steps, the number
// grows by start. After that, it grows by start times a rising power of base. If most is positive, it limits this
// growth.
func exponentialEnds(start, total int, base float64, most, warmup int) []int {
	if base <= 0 {
		base = 2
	}
	ends := []int{start}
	for last, n := start, 2; last < total && len(ends) <= maxSteps; n++ {
		increase := start
		if warmup <= 0 || n > warmup {
			increase = max(1, int(min(math.Pow(base, float64(n-max(0, warmup))), float64(total)))*start)
			if most > 0 {
				increase = min(increase, most)
			}
		}
		last = min(total, last+increase)
		ends = append(ends, last)
	}
	return ends
}
