package importer

import (
	"fmt"
	"slices"
	"strings"
)

// hookTimes are the values of a hook's field when, the point of a job at which kube-burner runs the hook.
var hookTimes = []string{
	"beforeJobExecution", "afterJobExecution", "beforeChurn", "afterChurn", "beforeCleanup", "afterCleanup", "beforeGC", "afterGC", "onEachIteration",
}

// hooks adds the hooks of a job to its phases. first is the index of the job's first phase. removed is the index of the
// phase that deletes the job's objects, or -1. Background hooks run before other hooks, as in kube-burner.
func (b *burner) hooks(j *burnJob, first, removed int) {
	all := j.list("hooks")
	rank := func(h *fields) string { // hooks for each iteration run after the hooks before the job
		return fmt.Sprint(h.text("when", "") == "onEachIteration", !h.flag("background", false))
	}
	slices.SortStableFunc(all, func(a, b *fields) int { return strings.Compare(rank(a), rank(b)) })
	for _, h := range all {
		b.hook(j, h, b.item(), first, removed)
	}
}

func (b *burner) hook(j *burnJob, h *fields, item *item, first, removed int) {
	when, command, background := h.text("when", ""), strings.Join(h.texts("cmd"), " "), h.flag("background", false)
	if len(b.phases) == first {
		item.remark(b.lastPhase(), h.at(""), "the command is not run %s, because the job has no phase here: %s", when, command)
		return
	}
	global := b.root.sub("global")
	phases, side := []int{first}, "before"
	after := func(phase int) { phases, side = []int{phase}, "after" }
	never, lost := "", "" // why kube-burner or only the run does not execute the command
	switch when {
	case "afterJobExecution":
		after(j.last)
	case "beforeChurn":
		never = "kube-burner knows this hook but does not run it"
	case "afterChurn":
		if after(j.churned); j.churned < 0 || j.sub("churnConfig").text("mode", "namespaces") != "objects" {
			never = "kube-burner runs it only after a churn of mode objects"
		}
	case "beforeCleanup":
		after(max(j.last, j.churned))
	case "afterCleanup":
		if after(removed); removed < 0 && global.flag("gc", false) && global.flag("gcMetrics", false) {
			lost = "kube-burner runs this command after everything is removed; here it is not run"
		} else if removed < 0 {
			never = "kube-burner runs it only if the job has gc, or global has gc and gcMetrics"
		}
	case "beforeGC", "afterGC": // kube-burner removes objects of earlier runs before the first job
		if phases = []int{0}; j.kind != "create" || !j.flag("cleanup", true) {
			never = "kube-burner runs it at the start of a run, for create jobs with cleanup"
		}
	case "onEachIteration":
		if b.apart(j) {
			phases = j.each
		} else if j.iterations > 1 || j.kind != "create" || j.has("incrementalLoad") {
			lost = fmt.Sprintf("the command is not run at each of the %d iterations; that is possible for up to %d iterations of a create job", j.iterations, maxEach)
		}
	}
	switch {
	case never != "":
		addComment(b.phases[first].Node, fmt.Sprintf("Hook %s of job %s: %s.", when, j.name, never))
		return
	case lost != "":
		item.remark(b.topOf(first), h.at(""), "%s: %s", lost, command)
		return
	}
	run := h.texts("cmd")
	if background { // in its own session, the command continues when the hook's process group ends
		run = append([]string{"sh", "-c", `setsid "$@" > /dev/null 2>&1 & sleep 1`, "sh"}, run...)
		item.remark(b.topOf(phases[0]), h.at("background"), "%s runs during the job; its exit code is not checked", command)
	}
	for _, phase := range phases {
		b.addHook(b.phases[phase], side, run)
	}
}

// addHook appends a command to the hooks of a phase. side is "before" or "after".
func (b *burner) addHook(phase *mapping, side string, command []string) {
	if phase.key(side) == nil {
		phase.set(side, []*mapping{})
	}
	list := phase.value(side)
	list.Content = append(list.Content, block("run", command, "within", length(b.timeout)).Node)
}
