package importer

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/template"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// deletion returns an action that deletes the objects that match a label selector. If foreground is set, an object
// stays until its dependents are gone. more are additional fields of the action's target.
func deletion(resource, labelSelector string, foreground bool, rate float64, more ...any) *mapping {
	target := flow("resource", resource, "labelSelector", labelSelector).add(more...)
	return block("kind", "delete", "target", target, "propagation", when(foreground, "Foreground"), "rate", perSecond(rate))
}

// deleteJob adds a phase for each kind of object that a job deletes.
func (b *burner) deleteJob(j *burnJob) {
	j.ignore("jobIterations", "waitWhenFinished") // a delete job always has one iteration
	for _, o := range j.objects {
		node := b.lastPhase()
		live, deleted, count := b.matching(o)
		resource := builtin.ResourceOf(o.apiVersion, o.kind)
		switch {
		case o.kind == "Namespace":
			o.item.remark(node, o.at("kind"), "job %s: the run deletes its namespaces when it ends", j.name)
			b.lose("deletion of namespaces by job", j.name)
			continue
		case len(live) == 0 && len(deleted) == 0:
			o.item.remark(node, o.at("labelSelector"), "job %s: no earlier job creates a %s with labels %s, so there is nothing to delete", j.name, o.kind, selector(o.labels))
			continue
		case len(live) == 0 && !j.waitForDeletion:
			o.item.remark(node, o.at("kind"), "job %s: the %ss are deleted with their owners, by an earlier job", j.name, o.kind)
			continue
		}
		name := j.name
		if len(j.objects) > 1 {
			name = withSuffix(nameOf(j.name), strings.ToLower(o.kind))
		}
		p := b.phase(name)
		if len(live) == 0 {
			o.item.remark(p.Node, o.at("kind"), "the %ss are deleted with their owners, by an earlier job; the run only waits until they are gone", o.kind)
		} else {
			p.set("actions", []*mapping{deletion(resource, selector(o.labels), false, j.qps)})
		}
		var gone []string
		if named := celName.MatchString(resource); j.waitForDeletion && named {
			gone = append(gone, noneOf(resource, o.labels))
		} else if j.waitForDeletion {
			o.item.remark(p.Node, j.at("waitForDeletion"), "the run does not wait for these objects: a condition cannot contain the resource name %s", resource)
		}
		for _, m := range live {
			m.deleted = m.deleted || m.kind() == o.kind // controllers recreate pods, so only objects of this kind count as deleted
		}
		until(p, gone, j.within+atRate(count, j.qps))
		b.pause(name, j.duration("objectDelay", 0))
	}
	b.pause(j.name, j.delay)
}

// maxPatches is the maximum number of patch actions into which a patch job is converted.
const maxPatches = 200

// patchJob adds one phase for all patches of a patch job. If kube-burner pauses between patches, patchJob adds a phase
// for each patch.
func (b *burner) patchJob(j *burnJob) {
	sequential := j.text("executionMode", "parallel") == "sequential"
	apart := sequential && (j.delay > 0 || j.duration("objectDelay", 0) > 0 || j.flag("objectWait", false))
	var pending []*mapping
	var takes time.Duration
	var waits []string
	for _, o := range j.objects {
		resource := builtin.ResourceOf(o.apiVersion, o.kind)
		waited := o.wait && !b.wait && (j.wait || !sequential)
		if test := readyTest(o.kind); waited && test != "" && celName.MatchString(resource) && b.stubs[resource] == nil {
			waits = append(waits, allOf(resource, nil, test, ownOf(o.kind)...))
		}
	}
	iterations := j.iterations
	if most := max(1, maxPatches/max(1, len(j.objects))); iterations > most {
		j.item.remark(b.lastPhase(), j.at("jobIterations"), "job %s: only the first %d of its %d iterations are imported", j.name, most, iterations)
		iterations = most
	}
	flush := func(name string) {
		if len(pending) == 0 {
			return
		}
		p := b.phase(name)
		p.set("actions", pending)
		until(p, distinct(waits), j.within+takes)
		pending, takes = nil, 0
	}
	for i := range iterations {
		name := withSuffix(nameOf(j.name), fmt.Sprint(i))
		for _, o := range j.objects {
			b.quiet = i > 0 // remarks on the first iteration apply to all
			a := b.patch(j, o, i)
			if b.quiet = false; a != nil {
				pending = append(pending, a)
				_, _, count := b.matching(o)
				takes += atRate(count, j.qps)
			}
			if apart {
				flush(name)
				b.pause(name, j.duration("objectDelay", 0))
			}
		}
		if apart {
			b.pause(name, j.delay)
		}
	}
	flush(j.name)
}

// patch returns an action that patches the objects of the entry o in one iteration, or nil if the patch cannot be
// converted.
func (b *burner) patch(j *burnJob, o *burnObject, iteration int) *mapping {
	failed := func(at Remark, format string, args ...any) *mapping {
		o.item.remark(b.lastPhase(), at, format, args...)
		return nil
	}
	live, _, _ := b.matching(o)
	if len(live) == 0 {
		return failed(o.at("labelSelector"), "job %s: no earlier job creates a %s with labels %s, so there is nothing to patch", j.name, o.kind, selector(o.labels))
	}
	file := filepath.Join(b.dir, o.template)
	data, err := userfile.Read(file, userfile.Text)
	if err != nil {
		o.fail("objectTemplate", "cannot read %s: %v (paths are relative to the configuration's directory)", o.template, err)
		return nil
	}
	values := b.values(j, o, iteration, 0)
	if j.flag("defaultMissingKeysWithZero", false) {
		for _, name := range template.Names(string(data)) {
			if _, has := values[name]; !has {
				values[name] = nil
			}
		}
	}
	data = randomText.ReplaceAll(data, []byte("random($1)"))
	text, err := renderConfig(b.limits, file, append(data, b.functions...), values)
	if _, lack, ok := strings.Cut(fmt.Sprint(err), "it needs values: "); ok {
		lack, _, _ = strings.Cut(lack, " (")
		o.fail("", "%s reads missing values: %s (add them to inputVars)", o.template, lack)
		return nil
	}
	if err != nil {
		return failed(o.at("objectTemplate"), "the patch cannot be rendered, and is left out: %v", err)
	}
	var patch any
	if err := yaml.Unmarshal([]byte(text), &patch); err != nil || patch == nil {
		return failed(Remark{File: file}, "the patch is not valid YAML and is left out: %v", err)
	}
	kind, asked := "", o.text("patchType", "")
	for name, media := range scenario.PatchTypes {
		if asked == media || asked == name {
			kind = name
		}
	}
	if kind == "" {
		return failed(o.at("patchType"), "unknown patch type %q", asked)
	}
	if fields, ok := patch.(map[string]any); ok { // the selectors of later jobs may match the new labels
		for _, m := range live {
			m.labels = maps.Clone(m.labels)
			maps.Copy(m.labels, manifest(fields).labels())
		}
	}
	a := block("kind", "patch", "target", flow("resource", builtin.ResourceOf(o.apiVersion, o.kind), "labelSelector", selector(o.labels)),
		"patchType", when(kind != "merge", kind))
	a.set("patch", patch)
	drawAgain(a.value("patch"))
	a.set("rate", perSecond(j.qps))
	once := []string{"randInt", "randAlphaNum", "randAlpha", "randNumeric", "randAscii", "randBytes", "shuffle", "uuidv4", "env"}
	calls, _ := template.Calls(string(data))
	if at := slices.IndexFunc(calls, func(c template.Call) bool { return slices.Contains(once, c.Function) }); at >= 0 {
		o.item.remark(a.Node, Remark{File: file, Line: calls[at].Line}, "the import evaluated %s once; all objects have the same value", calls[at].Function)
	}
	return a
}

// randomText matches random texts in the template of a patch. The import renders the template, but the run draws these
// texts for each object, as kube-burner does. randomCall matches their placeholders in the rendered template.
var (
	randomText = regexp.MustCompile(`\{\{\s*(uuidv4|rand(?:AlphaNum|Alpha|Bytes)\s+\d+)\s*\}\}`)
	randomCall = regexp.MustCompile(`random\((uuidv4|rand[A-Za-z]+\s+\d+)\)`)
)

// drawAgain replaces the placeholders in the values of a patch by calls of random functions.
func drawAgain(n *yaml.Node) {
	if randomCall.MatchString(n.Value) {
		n.Value, n.Style = randomCall.ReplaceAllString(n.Value, "{{$1}}"), yaml.SingleQuotedStyle
	}
	for _, child := range n.Content {
		drawAgain(child)
	}
}

// readingJob converts a read job: for each entry in its objects, it adds a phase with a load of get requests.
func (b *burner) readingJob(j *burnJob) {
	for _, o := range j.objects {
		resource := builtin.ResourceOf(o.apiVersion, o.kind)
		_, _, count := b.matching(o)
		if !slices.Contains(scenario.Manifests, resource) || resource == "pods" || count == 0 {
			o.item.remark(b.lastPhase(), o.at("kind"), "job %s is not imported: no load can read %s", j.name, resource)
			continue
		}
		p := b.phase(withSuffix(nameOf(j.name), strings.ToLower(o.kind)))
		l := block("name", phaseName(p), "kind", "requests", "verb", "get", "resource", resource, "rate", perSecond(j.qps), "objects", min(count, 100_000))
		p.add("for", length(atRate(count*j.iterations, j.qps)), "load", []*mapping{l})
		o.item.remark(l.Node, o.at("labelSelector"), "the load does not read the objects with these labels; it creates the same number of %s and reads them", resource)
	}
	j.ignore("jobIterationDelay")
}

// removal adds a phase that deletes those objects of a job that have the given labels.
func (b *burner) removal(j *burnJob, labels map[string]string, name string) {
	var actions []*mapping
	var gone, done []string
	count := 0
	for i := range b.made {
		m := &b.made[i]
		if m.deleted || m.job != j || !selects(labels, m.labels) {
			continue
		}
		m.deleted = true
		count += m.count
		resource := m.resource()
		if slices.Contains(done, resource) {
			continue
		}
		done = append(done, resource)
		actions = append(actions, deletion(resource, selector(labels), false, j.qps))
		if j.waitForDeletion && celName.MatchString(resource) {
			gone = append(gone, noneOf(resource, labels))
		}
	}
	if len(actions) == 0 {
		return
	}
	p := b.phase(withSuffix(nameOf(name), "removed"))
	p.set("actions", actions)
	until(p, gone, j.within+atRate(count, j.qps))
	if slices.ContainsFunc(b.made, func(m madeObjects) bool { return m.job == j && namespaced(m.kind()) }) {
		j.item.remark(p.Node, j.at(""), "job %s: its objects are deleted, and its namespaces stay until the end of the run", j.name)
	}
}
