package importer

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/template"
)

// objectTemplate converts an entry in the objects of a job to a template of a load. It returns nil if that is
// impossible.
func (b *burner) objectTemplate(j *burnJob, o *burnObject) *burnTemplate {
	text, ok := b.readTemplate(o)
	if !ok {
		return nil
	}
	t := newMapping()
	vars := maps.Clone(o.vars)
	values := b.values(j, o, 0, 1)
	for _, name := range template.Names(text) {
		if _, has := values[name]; !has && j.flag("defaultMissingKeysWithZero", false) {
			vars[name], values[name] = nil, nil
		}
		if name == "UUID" || name == "RunID" {
			vars[name] = importUUID
			o.item.remark(t.Node, o.at("objectTemplate"), "%s is the same in every run: %s", name, importUUID)
		}
	}
	objects, err := render(b.limits, text, values)
	if err != nil {
		b.templateFailed(o, err)
		return nil
	}
	if len(objects) == 0 {
		o.item.remark(nil, o.at("objectTemplate"), "%s renders no object", o.template)
		return nil
	}
	b.createOnce(t, j, o, text, values, objects)
	every, iterations := o.every(j.iterations), o.times(j.iterations)
	text, objects = b.fit(t, j, o, text, corners(values, iterations, o.replicas), objects)
	t.add("replicas", when(o.replicas > 1, o.replicas), "everyIterations", when(every > 1, every), "vars", vars)
	made := &burnTemplate{object: o, at: t, text: b.template(t, path.Base(filepath.ToSlash(o.template)), text), objects: objects, count: o.replicas * iterations}
	b.note(j, made)
	return made
}

// createOnce limits the replicas and iterations of an entry whose objects all have the same name. kube-burner logs that
// such an object exists already, and creates the next one.
func (b *burner) createOnce(t *mapping, j *burnJob, o *burnObject, text string, values map[string]any, first []manifest) {
	same := func(iteration, replica int) bool {
		of := maps.Clone(values)
		of["Iteration"], of["Replica"] = iteration, replica
		objects, err := render(b.limits, text, of)
		return err == nil && slices.EqualFunc(first, objects, func(a, b manifest) bool {
			return a.name() != "" && a.name() == b.name() && a.namespace() == b.namespace()
		})
	}
	if o.replicas > 1 && same(0, 2) {
		o.item.remark(t.Node, o.at("replicas"), "all replicas have the name %s, so each iteration creates only one, as in kube-burner", first[0].name())
		o.replicas = 1
	}
	apart := j.inNamespaces && slices.ContainsFunc(first, manifest.spread)
	if j.iterations > 1 && o.every(j.iterations) == 1 && !apart && same(1, 1) {
		o.item.remark(t.Node, o.at("objectTemplate"), "all iterations have an object with the name %s, so only the first creates it, as in kube-burner", first[0].name())
		o.runOnce = true
	}
}

// burnTemplate is the converted template of an entry in a job's objects.
type burnTemplate struct {
	object  *burnObject
	at      *mapping
	text    *templateText
	objects []manifest // objects of the first iteration and replica
	count   int        // number of times that all iterations and replicas together create these objects
	placed  bool       // whether a load or an action contains the node `at`
}

// readTemplate reads the template of an entry and appends the functions of the configuration. If the template is
// unusable, it adds an error or a remark and returns false.
func (b *burner) readTemplate(o *burnObject) (string, bool) {
	file := filepath.Join(b.dir, o.template)
	if strings.Contains(o.template, "://") {
		o.item.remark(nil, o.at("objectTemplate"), "%s is not downloaded: save it locally, and name that file", o.template)
		return "", false
	}
	data, err := userfile.Read(file, userfile.Text)
	if err != nil {
		o.fail("objectTemplate", "cannot read %s: %v (paths are relative to the configuration's directory)", o.template, err)
		return "", false
	}
	text := string(data)
	unknown, err := template.Calls(text)
	if err != nil {
		b.errs = append(b.errs, fmt.Errorf("%s:%s (it is a Go template)", file, strings.ReplaceAll(strings.TrimPrefix(err.Error(), "template: t:"), "\n", " ")))
		return "", false
	}
	unknown = slices.DeleteFunc(unknown, func(call template.Call) bool { return template.Known(call.Function) })
	for _, call := range unknown {
		o.item.remark(nil, Remark{File: file, Line: call.Line}, "templates have no function %s: the object is left out", call.Function)
	}
	if len(unknown) > 0 {
		return "", false
	}
	if b.functions != "" && strings.Contains(text, "template ") {
		text += b.functions
	}
	return text, true
}

// templateFailed reports that a template cannot be rendered. If a value is missing, it reports an error, because
// kube-burner fails, too; otherwise it adds a remark.
func (b *burner) templateFailed(o *burnObject, err error) {
	at := Remark{File: filepath.Join(b.dir, o.template)}
	msg := strings.ReplaceAll(err.Error(), "\n", " ")
	if e := new(template.Error); errors.As(err, &e) {
		at.Line, msg = e.Line, e.Msg
	}
	if _, lacks, ok := strings.Cut(msg, "there is no value "); ok {
		b.fail(at, "there is no value %s (write inputVars: {%s: ...} at %s)", lacks, strings.Trim(lacks, `"`), o.at("").place())
		return
	}
	o.item.remark(nil, at, "the object is left out: %s", msg)
}

// fit removes unknown fields from a template and adds kube-burner's labels. It renders the template with each of
// `values` to verify the changes.
func (b *burner) fit(t *mapping, j *burnJob, o *burnObject, text string, values []map[string]any, objects []manifest) (string, []manifest) {
	text, unknown, dropped := dropUnknown(b.limits, text, values, objects)
	switch {
	case !dropped:
		o.item.remark(t.Node, o.at("objectTemplate"), "the run refuses objects with fields that Kubernetes lacks (remove from the template: %s)", strings.Join(unknown, ", "))
	case len(unknown) > 0:
		o.item.remark(t.Node, o.at("objectTemplate"), "the template loses fields that Kubernetes lacks, as the API server would drop them: %s", strings.Join(unknown, ", "))
	}
	changed, ok := addLabels(b.limits, text, values, true, b.ownLabels(j, o))
	switch {
	case !ok && b.selected(j, o):
		o.item.remark(t.Node, o.at("objectTemplate"), "kube-burner's labels, by which jobs select these objects, cannot be put into the template: write %s into it", selector(b.ownLabels(j, o)(0)))
	case !ok:
		o.item.remark(t.Node, o.at("objectTemplate"), "kube-burner's labels cannot be put into the template")
	}
	text = changed
	again, err := render(b.limits, text, values[0])
	if err != nil {
		return text, objects
	}
	if same, err := render(b.limits, trimLines(text), values[0]); err == nil && reflect.DeepEqual(same, again) {
		text = trimLines(text)
	}
	return text, again
}

// corners returns sample template values: for the first two and the last iteration, each with the first two and the
// last replica.
func corners(first map[string]any, iterations, replicas int) (all []map[string]any) {
	for _, i := range slices.Compact([]int{0, min(1, iterations-1), iterations - 1}) {
		for _, r := range slices.Compact([]int{1, min(2, replicas), replicas}) {
			values := maps.Clone(first)
			values["Iteration"], values["Replica"] = i, r
			all = append(all, values)
		}
	}
	return all
}

// trimLines removes blank lines around a text and white space at the ends of lines, so that YAML can encode it as a
// block scalar.
func trimLines(text string) string {
	lines := strings.Split(strings.Trim(text, "\r\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	return strings.Join(lines, "\n") + "\n"
}

// waitsFor returns the conditions that kube-burner waits for after it has created the objects of a batch.
func (b *burner) waitsFor(batch burnBatch) (conditions []string) {
	for _, m := range b.made {
		o := m.object
		if !slices.Contains(batch.objects, o) || !o.wait {
			continue
		}
		w := o.sub("waitOptions")
		kind, apiVersion := m.kind(), m.apiVersion()
		if other := w.text("kind", ""); other != "" {
			kind, apiVersion = other, w.text("apiVersion", apiVersion)
		}
		tests := []string{readyTest(kind)}
		if paths := w.list("customStatusPaths"); len(paths) > 0 {
			tests = nil
			for _, p := range paths {
				tests = append(tests, jqTest(p.text("key", ""), p.text("value", "")))
				if tests[len(tests)-1] == "" {
					o.item.remark(b.lastPhase(), p.at("key"), "the run does not wait for these objects: the jq expression %s has no known equivalent in CEL", p.text("key", ""))
				}
			}
		}
		resource := builtin.ResourceOf(apiVersion, kind)
		for _, test := range tests {
			switch {
			case test == "":
			case b.stubs[resource] != nil:
				o.item.remark(b.lastPhase(), o.at(""), "the run does not wait for %s: no controller sets the status of a stub", resource)
			case !celName.MatchString(resource):
				o.item.remark(b.lastPhase(), o.at("waitOptions"), "the run does not wait for these objects: a condition cannot contain the resource name %s", resource)
			default:
				conditions = append(conditions, allOf(resource, w.strings("labelSelector"), test, ownOf(kind)...))
			}
		}
	}
	return conditions
}

// ownOf returns the labels that an object of a kind must have so that kube-burner waits for it. For example,
// kube-burner does not wait for pods without jobLabel, such as the pods of Jobs.
func ownOf(kind string) []string {
	if kind == "Pod" {
		return []string{jobLabel}
	}
	return nil
}

const definitionKind = "CustomResourceDefinition"

// customGroups returns the API groups of the custom resources that jobs create.
func (b *burner) customGroups() (groups []string) {
	for _, j := range b.jobs {
		if j.kind != "create" {
			continue
		}
		for _, o := range j.objects {
			data, err := userfile.Read(filepath.Join(b.dir, o.template), userfile.Text)
			if err != nil {
				continue // reported when the object's creation is converted
			}
			objects, err := render(b.limits, string(data)+b.functions, b.values(j, o, 0, 1))
			if err != nil {
				continue
			}
			for _, m := range objects {
				if builtin.IsCustom(m.resource()) {
					groups = append(groups, groupOf(m.apiVersion()))
				}
			}
		}
	}
	return groups
}

// definition moves a template of CustomResourceDefinitions to the objects that a run creates before its first phase, if
// a job creates custom resources with these definitions. A run checks its loads at the start, which requires the
// definitions. definition reports whether it moved the template.
func (b *burner) definition(j *burnJob, t *burnTemplate) bool {
	needed := func(m manifest) bool {
		return m.kind() == definitionKind && slices.Contains(b.custom, m.at("spec").text("group"))
	}
	if !slices.ContainsFunc(t.objects, needed) || slices.ContainsFunc(t.objects, func(m manifest) bool { return m.kind() != definitionKind }) {
		return false
	}
	b.objects = append(b.objects, block("iterations", when(j.iterations > 1, j.iterations), "vars", flow("JobName", j.name), "templates", []*mapping{t.at}))
	t.object.item.remark(t.at.Node, t.object.at("objectTemplate"), "the run creates this CustomResourceDefinition before the first phase, because a later job creates objects of its kind")
	j.defines = true
	return true
}

// note records the objects that a template creates. It adds remarks about objects that behave differently in a run.
func (b *burner) note(j *burnJob, t *burnTemplate) {
	say := func(format string, args ...any) {
		t.object.item.remark(t.at.Node, t.object.at("objectTemplate"), format, args...)
	}
	for _, m := range t.objects {
		b.made = append(b.made, madeObjects{manifest: m, labels: m.labels(), count: t.count, job: j, object: t.object})
		need := m.need().times(float64(t.count))
		b.demand = b.demand.plus(need)
		ns := m.namespace()
		if at := slices.IndexFunc(b.groups, func(g *burnGroup) bool { return slices.Contains(g.Names(), ns) }); at >= 0 {
			b.groups[at].used = true
		} else if ns != "" {
			say("%s %s goes into another namespace of the run: %s is not the namespace of a job", m.kind(), m.name(), ns)
		}
		if names := namespacesIn(m); slices.ContainsFunc(b.jobs, func(o *burnJob) bool { return o.group == nil && namesOwn(names, o.namespace) }) {
			say("%s refers to namespaces %s, but the namespaces of the run have other names", m.kind(), strings.Join(names, ", "))
		}
		defined := slices.ContainsFunc(b.made, func(o madeObjects) bool {
			return o.kind() == definitionKind && strings.HasSuffix(o.name(), "."+groupOf(m.apiVersion()))
		})
		volumes := slices.ContainsFunc(b.made, func(o madeObjects) bool { return o.kind() == "PersistentVolume" })
		unserved := ""
		if !defined {
			unserved = b.unserved(m, false)
		}
		for _, problem := range b.problems(m, need, unserved, !volumes) {
			say("%s", problem)
		}
	}
}

// kube-burner adds these labels to objects and pods.
const (
	ownPrefix      = "kube-burner.io/"
	jobLabel       = ownPrefix + "job"
	indexLabel     = ownPrefix + "index"
	groupLabel     = ownPrefix + "group"
	iterationLabel = ownPrefix + "job-iteration"
	replicaLabel   = ownPrefix + "replica"
)

// selectors returns all label selectors in the jobs of the configuration.
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

// ownLabels returns a function from a document's index to the labels that kube-burner adds to the document's objects.
// Labels with the UUID or run ID are only included if a selector uses them. Otherwise the run's label replaces them.
func (b *burner) ownLabels(j *burnJob, o *burnObject) func(document int) map[string]string {
	labels := map[string]string{jobLabel: j.name, groupLabel: fmt.Sprint(o.group), iterationLabel: "{{.Iteration}}", replicaLabel: "{{.Replica}}"}
	if o.repeat > 1 {
		labels[iterationLabel] = fmt.Sprintf("{{mul .Iteration %d}}", o.repeat)
	}
	for _, key := range []string{ownPrefix + "uuid", ownPrefix + "runid"} {
		if slices.ContainsFunc(b.selectors(), func(asked map[string]string) bool { _, is := asked[key]; return is }) {
			labels[key] = importUUID
		}
	}
	return func(document int) map[string]string {
		of := maps.Clone(labels)
		of[indexLabel] = fmt.Sprint(o.index + document)
		return of
	}
}

// selected reports whether the objects of a job must have kube-burner's labels, because a selector, churn or a removal
// depends on them.
func (b *burner) selected(j *burnJob, o *burnObject) bool {
	if j.flag("gc", false) || o.sub("group").flag("gc", false) || j.has("incrementalLoad") || j.churn {
		return true
	}
	return slices.ContainsFunc(b.selectors(), func(asked map[string]string) bool {
		return slices.ContainsFunc(sortedKeys(asked), func(key string) bool { return strings.HasPrefix(key, ownPrefix) }) &&
			(asked[jobLabel] == "" || asked[jobLabel] == j.name)
	})
}

// number sets the value of kube-burner's index label for each entry: the number of documents in the templates of
// earlier entries.
func (b *burner) number(j *burnJob) {
	index := 0
	for _, o := range j.objects {
		o.index = index
		if o.replicas < 1 {
			continue
		}
		documents := 0
		data, _ := userfile.Read(filepath.Join(b.dir, o.template), userfile.Text)
		for _, part := range documentTexts(string(data)) {
			if hasFields(strings.Split(part, "\n")) {
				documents++
			}
		}
		index += max(1, documents)
	}
}

// matching returns the objects of earlier jobs that match the label selector of an entry. live are the objects that
// still exist, count is their number, and gone are those that were deleted.
func (b *burner) matching(o *burnObject) (live, gone []*madeObjects, count int) {
	asked := maps.Clone(o.labels)
	delete(asked, iterationLabel) // ignore these two labels: each of their values selects some objects
	delete(asked, replicaLabel)
	for i := range b.made {
		m := &b.made[i]
		labels := m.labels
		switch {
		case o.kind == "Pod" && m.kind() != "Pod":
			labels = m.podLabels()
		case m.kind() != o.kind || groupOf(m.apiVersion()) != groupOf(o.apiVersion):
			continue
		}
		switch {
		case len(labels) == 0 || !selects(asked, labels):
		case m.deleted:
			gone = append(gone, m)
		default:
			live, count = append(live, m), count+m.count
		}
	}
	return live, gone, count
}
