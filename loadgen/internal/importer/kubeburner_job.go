package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

type burnJob struct {
	*fields
	name, kind, namespace    string
	group                    *burnGroup // the namespaces of the job; nil: the run's namespaces
	noGroup                  string     // the reason why a job with a namespace has no group; may be empty
	iterations, perNamespace int
	inNamespaces             bool // value of the job's field namespacedIterations
	qps                      float64
	burst                    int
	wait, podWait, churn     bool
	waitForDeletion          bool
	defines                  bool // whether a template of this job moved to the objects created before the first phase
	within, delay, pause     time.Duration
	objects                  []*burnObject
	item                     *item

	made  []burnBatch   // the created objects, for churn
	waits []string      // conditions that the run waits for after the job has created its objects
	takes time.Duration // estimated duration of the longest creation
	each  []int         // phase index of each iteration or, if iterations share phases, of the first phase
	// last is the index of the last phase before churn. churned is the index of the last churn phase. -1 means that there
	// is no such phase.
	last, churned int
}

// burnObject is an entry in the objects field of a job.
type burnObject struct {
	*fields
	template, kind, apiVersion     string
	labels                         map[string]string // value of the field labelSelector
	vars                           map[string]any
	wait, runOnce                  bool
	replicas, repeat, group, index int
	item                           *item
}

// defaultQPS and defaultBurst are kube-burner's defaults for jobs, which are also the defaults of client-go.
const (
	defaultQPS   = 5
	defaultBurst = 10
)

// readJob reads a job and applies defaults.
func (b *burner) readJob(f *fields) *burnJob {
	j := &burnJob{
		fields: f, name: f.text("name", ""), kind: f.text("jobType", "create"), namespace: f.text("namespace", ""),
		iterations: f.integer("jobIterations", 1), perNamespace: max(1, f.integer("iterationsPerNamespace", 1)),
		inNamespaces: f.flag("namespacedIterations", true), qps: f.number("qps", 0), burst: f.integer("burst", 0),
		wait: f.flag("waitWhenFinished", true), podWait: f.flag("podWait", false),
		within: f.duration("maxWaitTimeout", b.timeout), delay: f.duration("jobIterationDelay", 0), pause: f.duration("jobPause", 0),
		waitForDeletion: f.flag("waitForDeletion", true), item: b.item(), last: -1, churned: -1,
	}
	churn := f.sub("churnConfig")
	j.churn = churn.integer("cycles", 0) > 0 || churn.duration("duration", 0) > 0
	f.check(j.name != "", "", "the job has no name (write name: ...)")
	used := slices.ContainsFunc(b.jobs, func(other *burnJob) bool { return other.name == j.name })
	f.check(j.name == "" || !used, "name", "two jobs have the name %s (names must be unique)", j.name)
	known := slices.Contains([]string{"create", "delete", "patch", "read", "kubevirt"}, j.kind)
	f.check(known, "jobType", "kube-burner has no jobs of type %q (create, delete, patch, read, kubevirt)", j.kind)
	for _, of := range f.list("objects") {
		o := &burnObject{
			fields: of, template: of.text("objectTemplate", ""), replicas: of.integer("replicas", 1),
			kind: of.text("kind", ""), apiVersion: of.text("apiVersion", "v1"), labels: of.strings("labelSelector"), vars: of.values("inputVars"),
			wait: of.flag("wait", true), runOnce: of.flag("runOnce", false), repeat: max(1, of.integer("repeatEveryNIterations", 1)),
			group: of.sub("group").integer("id", 0), item: b.item(),
		}
		of.check(o.template != "" || j.kind != "create" && j.kind != "patch", "", "the object has no objectTemplate")
		of.check(o.replicas <= maxObjects, "replicas", "%d replicas (a load makes at most %d objects)", o.replicas, maxObjects)
		j.objects = append(j.objects, o)
	}
	f.check(j.iterations >= 1, "jobIterations", "%d iterations: kube-burner refuses the job", j.iterations)
	f.check(j.kind != "create" || j.iterations <= maxObjects, "jobIterations", "%d iterations (a load makes at most %d objects)", j.iterations, maxObjects)
	f.check(j.qps <= scenario.MaxRate, "qps", "%g requests a second (at most %d)", j.qps, scenario.MaxRate)
	for _, h := range f.list("hooks") {
		when := h.text("when", "")
		h.check(slices.Contains(hookTimes, when), "when", "kube-burner has no hook time %q (choose from: %s)", when, strings.Join(hookTimes, ", "))
		if len(h.texts("cmd")) == 0 {
			b.fail(placeOf(h.file, h.node, h.at("cmd").Field), "the hook has no command (write cmd: [sh, -c, ...])")
		}
	}
	if j.qps <= 0 {
		j.qps = defaultQPS
	}
	if j.burst <= 0 {
		j.burst = defaultBurst
	}
	return j
}

func (b *burner) job(j *burnJob) {
	// These fields only control how metrics are indexed, or what every run does anyway.
	j.ignore("cleanup", "skipIndexing", "metricsAggregate", "metricsClosing", "preCreateNamespaces", "preLoadPeriod", "preLoadNodeLabels")
	from, sets := len(b.phases), b.profilesOf(j)
	asked := b.part("job " + j.name)
	b.profilePhase(withSuffix(nameOf(j.name), "profile"), sets)
	first := len(b.phases)
	switch j.kind {
	case "create":
		b.createJob(j)
	case "delete":
		b.deleteJob(j)
	case "patch":
		b.patchJob(j)
	case "read":
		b.readingJob(j)
	default:
		j.item.remark(nil, j.at("jobType"), "job %s: scenarios have no KubeVirt commands", j.name)
		j.ignore("objectDelay", "objectWait")
		for _, o := range j.objects {
			o.item.remarks++
			o.ignore("kubeVirtOp")
		}
	}
	if j.last < first {
		j.last = len(b.phases) - 1
	}
	node := b.topOf(first)
	for _, m := range j.list("measurements") {
		b.measurement(m, j)
	}
	if len(b.phases) == first {
		if len(j.objects) > 0 {
			b.lose("job", j.name)
		}
		b.phases, first = b.phases[:from], from
	} else if len(j.each) == 0 {
		j.each = []int{first}
	}
	for _, at := range j.each {
		b.profileEach(j, sets, b.phases[at])
	}
	if b.options.OwnCluster && j.kind == "create" && j.flag("preLoadImages", true) {
		j.item.remark(node, j.at("preLoadImages"), "images are not loaded onto the nodes beforehand")
	}
	b.pause(j.name, j.pause)
	if len(b.phases) > first {
		b.profilePhase(withSuffix(nameOf(j.name), "profile"), sets)
	}
	removed := -1
	if j.kind == "create" && len(b.phases) > first && j.flag("gc", false) && !j.has("incrementalLoad") {
		b.removal(j, map[string]string{jobLabel: j.name}, j.name)
		removed = len(b.phases) - 1
	}
	b.hooks(j, first, removed)
	j.ignore("preLoadImages", "verifyObjects", "errorOnVerify", "gc", "churnConfig", "watchers", "incrementalLoad", "defaultMissingKeysWithZero",
		"namespaceLabels", "namespaceAnnotations", "executionMode", "objectDelay", "objectWait", "namespace", "hooks")
	asked.from, asked.to = from, len(b.phases)
	b.asks(j, asked)
}

// maxObjects is the maximum number of objects of a load.
const maxObjects = 1_000_000

// topOf returns the YAML node before which comments about the phase with index `first` stand, or nil without such a
// phase.
func (d *draft) topOf(first int) (node *yaml.Node) {
	if first >= 0 && first < len(d.phases) {
		return d.phases[first].Node
	}
	return nil
}

func (d *draft) lastPhase() *yaml.Node { return d.topOf(len(d.phases) - 1) }

// values returns the template values of an object for one iteration and replica.
func (b *burner) values(j *burnJob, o *burnObject, iteration, replica int) map[string]any {
	values := map[string]any{"Iteration": iteration, "Replica": replica, "JobName": j.name, "UUID": importUUID, "RunID": importUUID}
	maps.Copy(values, o.vars)
	return values
}

// asks adds to p what the configuration specifies for a job: objects, actions, waits and rates.
func (b *burner) asks(j *burnJob, p *part) {
	verb := map[string]string{"delete": "delete ", "patch": "patch ", "read": "get "}[j.kind]
	for _, o := range j.objects {
		switch resource := builtin.ResourceOf(o.apiVersion, o.kind); {
		case j.kind == "kubevirt":
			p.actions = append(p.actions, o.text("kubeVirtOp", ""))
		case verb != "":
			p.actions = append(p.actions, verb+resource)
			if j.kind == "delete" && j.waitForDeletion {
				p.waits = append(p.waits, "no "+resource)
			}
			if j.kind == "patch" && o.wait && !b.wait && readyTest(o.kind) != "" {
				p.waits = append(p.waits, resource)
			}
		case o.replicas > 0:
			b.addCreated(j, o, p)
		}
	}
	if j.kind == "create" && len(p.objects) > 0 || j.kind == "read" {
		p.rates = []string{rateText(j.qps, 0, "")}
		if j.delay > 0 && j.iterations > 1 {
			p.rates[0] += " with pauses of " + j.delay.String()
		}
	}
	for _, w := range j.list("watchers") {
		p.actions = append(p.actions, "watch "+builtin.ResourceOf(w.text("apiVersion", "v1"), w.text("kind", "")))
	}
}

// addCreated adds to p what the configuration specifies for the entry o in the objects of a create job.
func (b *burner) addCreated(j *burnJob, o *burnObject, p *part) {
	found := false
	removes := j.flag("gc", false) || j.has("incrementalLoad") || o.sub("group").flag("gc", false)
	for _, m := range b.made {
		if m.object != o {
			continue
		}
		found = true
		p.objects[m.kind()] += m.count
		p.namespaces = max(p.namespaces, 1)
		if namespaced(m.kind()) && j.inNamespaces {
			p.namespaces = max(p.namespaces, (j.iterations+j.perNamespace-1)/j.perNamespace)
		}
		resource := m.resource()
		churned := j.churn && (j.sub("churnConfig").text("mode", "") != "objects" || o.flag("churn", true))
		if removes || churned {
			p.actions = append(p.actions, "delete "+resource)
		}
		if removes && j.waitForDeletion || churned {
			p.waits = append(p.waits, "no "+resource)
		}
		w := o.sub("waitOptions")
		kind, apiVersion := w.text("kind", m.kind()), m.apiVersion()
		if w.has("kind") {
			apiVersion = w.text("apiVersion", apiVersion)
		}
		if o.wait && (j.wait || j.podWait || b.wait) && (readyTest(kind) != "" || w.has("customStatusPaths")) {
			to := p
			if b.wait {
				to = b.all
			}
			to.waits = append(to.waits, builtin.ResourceOf(apiVersion, kind))
		}
	}
	if !found {
		p.objects["of "+o.template] += o.replicas * o.times(j.iterations)
	}
}

// hookTimes are the values of a hook's field `when`: the points of a job at which kube-burner runs hooks.
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
	never, lost := "", "" // never: why kube-burner does not run the command; lost: why only the run does not
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
