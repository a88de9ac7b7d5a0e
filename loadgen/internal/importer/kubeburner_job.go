package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// burnJob is a job of kube-burner.
type burnJob struct {
	*fields
	name, kind      string
	namespace       string
	iterations      int
	perNamespace    int
	inNamespaces    bool // namespacedIterations
	qps             float64
	burst           int
	wait, podWait   bool
	within          time.Duration
	delay, pause    time.Duration
	waitForDeletion bool
	objects         []*burnObject
	item            *item
}

// burnObject is an object of a job.
type burnObject struct {
	*fields
	template         string
	replicas         int
	kind, apiVersion string
	labels           map[string]string // of labelSelector
	vars             map[string]any
	wait, runOnce    bool
	repeat           int
	group            int
	index            int
	item             *item
}

// client-go's limits, which kube-burner takes for a job without qps or burst.
const (
	defaultQPS   = 5
	defaultBurst = 10
)

// readJob reads a job with its defaults.
func (b *burner) readJob(i int, f *fields) *burnJob {
	j := &burnJob{
		fields: f, name: f.text("name", ""), kind: f.text("jobType", "create"), namespace: f.text("namespace", ""),
		iterations: f.integer("jobIterations", 1), perNamespace: max(1, f.integer("iterationsPerNamespace", 1)),
		inNamespaces: f.flag("namespacedIterations", true), qps: f.number("qps", 0), burst: f.integer("burst", 0),
		wait: f.flag("waitWhenFinished", true), podWait: f.flag("podWait", false),
		within: f.duration("maxWaitTimeout", b.timeout), delay: f.duration("jobIterationDelay", 0), pause: f.duration("jobPause", 0),
		waitForDeletion: f.flag("waitForDeletion", true), item: b.item(),
	}
	if j.name == "" {
		b.src.fail(f.node, f.path, "a job without a name")
	}
	if !slices.Contains([]string{"create", "delete", "patch", "read", "kubevirt"}, j.kind) {
		b.src.fail(f.get("jobType"), f.field("jobType"), "kube-burner has no jobs of type %q (create, delete, patch, read, kubevirt)", j.kind)
	}
	for k, of := range f.list("objects") {
		o := &burnObject{
			fields: of, index: k, template: of.text("objectTemplate", ""), replicas: of.integer("replicas", 1),
			kind: of.text("kind", ""), apiVersion: of.text("apiVersion", "v1"), labels: of.strings("labelSelector"), vars: of.values("inputVars"),
			wait: of.flag("wait", true), runOnce: of.flag("runOnce", false), repeat: max(1, of.integer("repeatEveryNIterations", 1)),
			group: of.sub("group").integer("id", 0), item: b.item(),
		}
		if o.template == "" && (j.kind == "create" || j.kind == "patch") {
			b.src.fail(of.node, of.path, "an object without objectTemplate")
		}
		j.objects = append(j.objects, o)
	}
	if j.iterations < 1 {
		b.src.fail(f.get("jobIterations"), f.field("jobIterations"), "%d iterations: kube-burner refuses the job", j.iterations)
	}
	if j.qps <= 0 {
		j.qps = defaultQPS
	}
	if j.burst <= 0 {
		j.burst = defaultBurst
	}
	return j
}

// job adds what a job does.
func (b *burner) job(j *burnJob) {
	// What only says how metrics are indexed, and what a run does anyway.
	j.ignore("cleanup", "skipIndexing", "metricsAggregate", "metricsClosing", "preCreateNamespaces", "preLoadPeriod", "preLoadNodeLabels")
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
		j.item.remark(nil, j.at("jobType"), "job %s: there are no commands to KubeVirt's API", j.name)
		j.ignore("objectDelay", "objectWait")
		for _, o := range j.objects {
			o.item.remarks++
			o.ignore("kubeVirtOp")
		}
	}
	node := b.topOf(first)
	for _, m := range j.list("measurements") {
		b.measurement(m, j)
	}
	for i, h := range j.list("hooks") {
		b.item().remark(node, Remark{File: h.src.file, Line: h.src.line(h.node), Field: fmt.Sprintf("%s.hooks[%d]", j.path, i)},
			"no command is run %s: %s", h.text("when", ""), strings.Join(h.texts("cmd"), " "))
		h.ignore("background")
	}
	if b.options.OwnCluster && j.kind == "create" && j.flag("preLoadImages", true) {
		j.item.remark(node, j.at("preLoadImages"), "images are not loaded onto the nodes beforehand")
	}
	j.ignore("preLoadImages", "verifyObjects", "errorOnVerify", "gc", "churnConfig", "watchers", "incrementalLoad", "defaultMissingKeysWithZero",
		"namespaceLabels", "namespaceAnnotations", "executionMode", "objectDelay", "objectWait", "namespace")
	for _, key := range j.unread() {
		j.item.remark(node, j.at(key), "kube-burner has no such field")
	}
	b.pause(j.name, j.pause)
}

// topOf is the node before which comments on the phases since first stand; nil: there are none.
func (d *draft) topOf(first int) (node *yaml.Node) {
	if first >= 0 && first < len(d.phases) {
		return d.phases[first].Node
	}
	return nil
}

// selectors are the label selectors of all jobs, with which labels of kube-burner's own may be asked for.
func (b *burner) selectors() (all []map[string]string) {
	for _, j := range b.jobs {
		for _, o := range j.objects {
			all = append(all, o.labels, o.sub("waitOptions").strings("labelSelector"))
		}
		for _, w := range j.list("watchers") {
			all = append(all, w.strings("labelSelector"))
		}
	}
	return all
}

// ownPrefix begins the labels that kube-burner puts onto objects.
const ownPrefix = "kube-burner.io/"

// ownLabels are the labels of kube-burner that selectors ask for of the objects of a job.
func (b *burner) ownLabels(j *burnJob, o *burnObject) map[string]string {
	has := map[string]string{"job": j.name, "index": fmt.Sprint(o.index), "group": fmt.Sprint(o.group)}
	labels := map[string]string{}
	for _, asked := range b.selectors() {
		for key, value := range asked {
			own, ok := strings.CutPrefix(key, ownPrefix)
			if ok && has[own] == value && asked[ownPrefix+"job"] == j.name {
				labels[key] = value
			}
		}
	}
	if j.flag("gc", false) || o.sub("group").flag("gc", false) {
		labels[ownPrefix+"job"] = j.name
	}
	if o.sub("group").flag("gc", false) {
		labels[ownPrefix+"group"] = has["group"]
	}
	return labels
}

// values are those that templates of an object are rendered with.
func (b *burner) values(j *burnJob, o *burnObject, iteration, replica int) map[string]any {
	values := map[string]any{"Iteration": iteration, "Replica": replica, "JobName": j.name, "UUID": importUUID, "RunID": importUUID}
	maps.Copy(values, o.vars)
	return values
}

// matching are the objects that earlier jobs have made and a selector selects.
func (b *burner) matching(o *burnObject) (live, gone []*madeObjects) {
	for i := range b.made {
		m := &b.made[i]
		labels := m.labels
		switch {
		case o.kind == "Pod" && m.kind != "Pod":
			labels = m.pods
		case m.kind != o.kind || groupOf(m.apiVersion) != groupOf(o.apiVersion):
			continue
		}
		if len(labels) == 0 || !selects(o.labels, labels) {
			continue
		}
		if m.deleted {
			gone = append(gone, m)
		} else {
			live = append(live, m)
		}
	}
	return live, gone
}
