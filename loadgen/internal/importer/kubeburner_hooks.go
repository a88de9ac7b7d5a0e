package importer

import (
	"fmt"
	"slices"
	"strings"
)

// hookTimes returns the values of a hook's field when, the point of a job at which kube-burner runs the hook.
func hookTimes() []string {
	return []string{
		"beforeJobExecution", "afterJobExecution", "beforeChurn", "afterChurn", "beforeCleanup", "afterCleanup", "beforeGC", "afterGC", "onEachIteration",
	}
}

// checkHooks reports an error for each hook that kube-burner rejects.
func (b *burner) checkHooks(j *burnJob) {
	for _, h := range j.list("hooks") {
		when := h.text("when", "")
		if !slices.Contains(hookTimes(), when) {
			b.src.fail(h.get("when"), h.field("when"), "kube-burner has no hook time %q (choose from: %s)", when, strings.Join(hookTimes(), ", "))
		}
		if len(h.texts("cmd")) == 0 {
			b.src.fail(h.node, h.field("cmd"), "the hook has no command (write cmd: [sh, -c, ...])")
		}
	}
}

// hooks adds the hooks of a job to its phases. first is the index of the job's first phase. removed is the index of the
// phase that deletes the job's objects, or -1. Background hooks run before other hooks, as in kube-burner.
func (b *burner) hooks(j *burnJob, first, removed int) {
	var all []*fields
	for _, background := range []bool{true, false} {
		for _, h := range j.list("hooks") {
			if h.flag("background", false) == background {
				all = append(all, h)
			}
		}
	}
	for _, each := range []bool{false, true} { // hooks for each iteration run after the hooks before the job
		for _, h := range all {
			if (h.text("when", "") == "onEachIteration") == each {
				b.hook(j, h, b.item(), first, removed)
			}
		}
	}
}

func (b *burner) hook(j *burnJob, h *fields, item *item, first, removed int) {
	when := h.text("when", "")
	h.ignore("cmd", "background")
	never := func(why string) {
		addComment(b.phases[first].Node, fmt.Sprintf("Hook %s of job %s: %s.", when, j.name, why))
	}
	if len(b.phases) == first {
		item.remark(b.lastPhase(), h.at(""), "the command is not run %s, because the job has no phase here: %s", when, strings.Join(h.texts("cmd"), " "))
		return
	}
	phase, side := first, "before"
	switch when {
	case "beforeJobExecution":
	case "afterJobExecution":
		phase, side = j.last, "after"
	case "beforeChurn":
		never("kube-burner knows this hook but does not run it")
		return
	case "afterChurn":
		if j.kind != "create" || !j.churn || j.sub("churnConfig").text("mode", "namespaces") != "objects" {
			never("kube-burner runs it only after a churn of mode objects")
			return
		}
		phase, side = j.churned, "after"
	case "beforeCleanup":
		phase, side = max(j.last, j.churned), "after"
	case "afterCleanup":
		switch {
		case removed >= 0:
			phase, side = removed, "after"
		case b.root.sub("global").flag("gc", false) && b.root.sub("global").flag("gcMetrics", false):
			item.remark(b.topOf(first), h.at(""), "kube-burner runs this command after everything is removed; here it is not run: %s", strings.Join(h.texts("cmd"), " "))
			return
		default:
			never("kube-burner runs it only if the job has gc, or global has gc and gcMetrics")
			return
		}
	case "beforeGC", "afterGC": // kube-burner removes objects of earlier runs before the first job
		if j.kind != "create" || !j.flag("cleanup", true) {
			never("kube-burner runs it at the start of a run, for create jobs with cleanup")
			return
		}
		phase = 0
	case "onEachIteration":
		if b.apart(j) {
			b.hookEach(j, h, item)
			return
		}
		if j.iterations > 1 || j.kind != "create" || j.has("incrementalLoad") {
			item.remark(b.topOf(first), h.at(""), "the command is not run at each of the %d iterations; that is possible for up to %d iterations of a create job: %s", j.iterations, maxEach, strings.Join(h.texts("cmd"), " "))
			return
		}
	}
	b.addHook(b.phases[phase], side, b.command(h, item, b.phases[phase]))
}

// hookEach adds a hook before the phase of each iteration.
func (b *burner) hookEach(j *burnJob, h *fields, item *item) {
	for _, at := range j.each {
		b.addHook(b.phases[at], "before", b.command(h, item, b.phases[at]))
		b.quiet = true // the first phase carries the remark
	}
	b.quiet = false
}

// command converts a hook to a command of a phase. A background command runs in its own session, so that it continues
// when the hook's process group ends.
func (b *burner) command(h *fields, item *item, phase *mapping) *mapping {
	run := h.texts("cmd")
	m := newMapping()
	if h.flag("background", false) {
		item.remark(phase.Node, h.at("background"), "%s runs during the job; its exit code is not checked", strings.Join(run, " "))
		run = append([]string{"sh", "-c", `setsid "$@" > /dev/null 2>&1 & sleep 1`, "sh"}, run...)
	}
	m.set("run", run)
	m.set("within", length(b.timeout))
	return m
}

// addHook appends a command to the hooks of a phase. side is "before" or "after".
func (b *burner) addHook(phase *mapping, side string, command *mapping) {
	if list := phase.value(side); list != nil {
		list.Content = append(list.Content, command.Node)
		return
	}
	phase.set(side, []*mapping{command})
}
