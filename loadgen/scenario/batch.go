package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/template"
)

// Batch is objects made from templates: for each iteration, of each template, of each
// replica.
type Batch struct {
	Templates []Template `yaml:"templates,omitempty"` // in this order
	// Iterations: of all templates, {{.Iteration}} in them, from 0; default one for each namespace
	Iterations int `yaml:"iterations,omitempty" zero:"one for each namespace"`
	// Namespaces: over which the iterations are spread in equal parts, shared with other batches;
	// default 1, the run's own
	Namespaces int `yaml:"namespaces,omitempty" zero:"1"`
	// Vars: values by name, {{.NAME}} in templates
	Vars map[string]any `yaml:"vars,omitempty"`
	// Placement: "nodes" puts a selector and tolerations for the simulated nodes into pods and the
	// templates of pods (the default, with nodes), "none" does not
	Placement string `yaml:"placement,omitempty"`
}

// Template is a manifest, or several, as a Go template with sprig's functions; one of File, Text
// and Object.
type Template struct {
	// File: beside the scenario file, or absolute; a directory: what its kustomization builds, or its
	// files *.yaml, *.yml and *.json
	File   string `yaml:"file,omitempty"`
	Text   string `yaml:"text,omitempty"`   // of one or several YAML documents
	Object any    `yaml:"object,omitempty"` // as YAML, whose texts are templates
	// Replicas: of each document in each iteration, {{.Replica}} from 1; default 1
	Replicas int `yaml:"replicas,omitempty" zero:"1"`
	// Vars: beside those of the batch, which they replace
	Vars map[string]any `yaml:"vars,omitempty"`

	from string // the file that Text was read from
}

// Has reports whether there are templates.
func (b *Batch) Has() bool { return len(b.Templates) > 0 }

// PlacedBatch is a batch and where it stands.
type PlacedBatch struct {
	*Batch
	// Name of its load or action, in {{.JobName}}.
	Name string
	// Path of the batch in the file.
	Path string
}

// Batches lists every batch with the path of each: objects, those of actions, those of loads.
func (s *Scenario) Batches() []PlacedBatch {
	var all []PlacedBatch
	for i := range s.Objects {
		all = append(all, PlacedBatch{&s.Objects[i], "objects", fmt.Sprintf("objects[%d]", i)})
	}
	for i := range s.Phases {
		p := &s.Phases[i]
		for j := range p.Actions {
			if a := &p.Actions[j]; a.Has() {
				all = append(all, PlacedBatch{&a.Batch, p.Name, fmt.Sprintf("phases[%d].actions[%d]", i, j)})
			}
		}
	}
	for _, l := range s.Loads() {
		if b := l.Batch(); b.Has() {
			all = append(all, PlacedBatch{b, l.Name, l.Path})
		}
	}
	return all
}

// Batch is that of a load of objects.
func (l *Load) Batch() *Batch {
	return &Batch{Templates: l.Templates, Iterations: l.Iterations, Namespaces: l.Namespaces, Vars: l.Vars, Placement: l.Placement}
}

// BatchNamespaces are those of all batches, the run's own first.
func (s *Scenario) BatchNamespaces(run string) []string {
	most := 1
	for _, b := range s.Batches() {
		most = max(most, b.Namespaces)
	}
	all := []string{run}
	for i := 1; i < most; i++ {
		all = append(all, fmt.Sprintf("%s-%d", run, i))
	}
	return all
}

func (b *Batch) setDefaults() {
	if !b.Has() {
		return
	}
	orDefault(&b.Namespaces, 1)
	orDefault(&b.Iterations, b.Namespaces)
	orDefault(&b.Placement, "nodes")
	for i := range b.Templates {
		orDefault(&b.Templates[i].Replicas, 1)
	}
}

// Bounds of a batch. More objects are taken for a mistake.
const (
	maxBatch           = 1_000_000
	maxBatchNamespaces = 10_000
)

// batchShape checks a batch without its templates' texts, which may be in files.
func (v *validator) batchShape(path string, b *Batch) {
	v.between(path+".namespaces", float64(b.Namespaces), 1, maxBatchNamespaces)
	v.between(path+".iterations", float64(b.Iterations), 1, maxBatch)
	if b.Iterations < b.Namespaces {
		v.fail(path+".iterations", fmt.Sprintf("at least %d, or fewer namespaces", b.Namespaces), "%d iterations leave some of %d namespaces empty", b.Iterations, b.Namespaces)
	}
	v.oneOf(path+".placement", b.Placement, "nodes", "none")
	sum := 0
	for i := range b.Templates {
		t, at := &b.Templates[i], fmt.Sprintf("%s.templates[%d]", path, i)
		v.between(at+".replicas", float64(t.Replicas), 1, maxBatch)
		sum += t.Replicas
		given := 0
		for _, set := range []bool{t.File != "", t.Text != "", t.Object != nil} {
			if set {
				given++
			}
		}
		switch {
		case given == 0:
			v.fail(at, "write file: web.yaml, text: or object:", "a template without a manifest")
		case given > 1:
			v.fail(at, "keep one of file, text and object", "a template of %d manifests", given)
		}
	}
	if n := float64(sum) * float64(b.Iterations); n > maxBatch {
		v.fail(path+".iterations", fmt.Sprintf("at most %d objects", maxBatch), "%s objects", plain(n))
	}
}

// readTemplates reads the templates' files, of variants too, and renders the first object and
// the last of each template; relative files lie in dir.
func (s *Scenario) readTemplates(dir string) error {
	var errs []error
	for _, b := range s.Batches() {
		errs = append(errs, s.readBatch(dir, b))
	}
	if err := errors.Join(errs...); err != nil { // the variants have the same to say
		return err
	}
	for _, v := range s.variants {
		errs = append(errs, v.readTemplates(dir))
	}
	return errors.Join(errs...)
}

func (s *Scenario) readBatch(dir string, b PlacedBatch) error {
	if !b.inFiles() {
		return nil
	}
	var read []Template
	for i, t := range b.Templates {
		path := fmt.Sprintf("%s.templates[%d]", b.Path, i)
		if t.File == "" {
			read = append(read, t)
			continue
		}
		texts, err := readManifests(dir, t.File)
		if err != nil {
			return s.Errorf(path+".file", "a relative path begins at the scenario file", "cannot read %s: %v", t.File, err)
		}
		for _, m := range texts {
			one := t
			one.File, one.Text, one.from = "", m.text, m.name
			read = append(read, one)
		}
	}
	s.setTemplates(b.Path, read)
	b.Templates = read
	_, err := s.Expand(b)
	return err
}

// setTemplates puts the templates of a directory in the place of its own.
func (s *Scenario) setTemplates(path string, read []Template) {
	for i := range s.Objects {
		if fmt.Sprintf("objects[%d]", i) == path {
			s.Objects[i].Templates = read
		}
	}
	for i := range s.Phases {
		for j := range s.Phases[i].Actions {
			if fmt.Sprintf("phases[%d].actions[%d]", i, j) == path {
				s.Phases[i].Actions[j].Templates = read
			}
		}
	}
	for _, l := range s.Loads() {
		if l.Path == path {
			l.Templates = read
		}
	}
}

// Objects are those of a batch, in order: iteration by iteration, template by template, replica
// by replica, document by document. It is for one goroutine.
type Objects struct {
	batch     PlacedBatch
	scenario  *Scenario
	seed      int64
	templates []*template.Template
	shapes    []*template.Shape // of each template; nil: it has none
	documents []int             // of each template
	iteration int               // objects of one

	kinds  []ObjectKind
	kindOf [][]int // by template and document

	rendered int // of the last, by its number; -1: none
	held     []map[string]any

	filled int // of the last values, by the number of the first object; -1: none
	slots  []string
	fits   bool
}

// ObjectKind is a kind of object in a batch.
type ObjectKind struct {
	APIVersion, Kind string
	// Count is how many objects there are of it.
	Count int
}

// Object is one of a batch.
type Object struct {
	Manifest map[string]any
	// APIVersion, Kind and Name of the manifest; a generateName has no name.
	APIVersion, Kind, Name string
	// Namespace is an index into Scenario.BatchNamespaces.
	Namespace int
	// Placement is that of the batch.
	Placement string
	// Place is where its manifest begins, for errors: FILE:LINE, or the scenario's.
	Place string
}

// String is the kind and the name.
func (o *Object) String() string { return o.Kind + " " + o.Name }

// Expand compiles the templates of a batch, and renders the first object and the last of each.
// Errors name file, line and field.
func (s *Scenario) Expand(b PlacedBatch) (*Objects, error) {
	o := &Objects{batch: b, scenario: s, seed: s.Seed, rendered: -1, filled: -1}
	for i := range b.Templates {
		text := b.Templates[i].Text
		if object := b.Templates[i].Object; object != nil {
			data, err := yaml.Marshal(object)
			if err != nil {
				return nil, o.errorf(i, err)
			}
			text = string(data)
		}
		t, err := template.Parse(text)
		if err != nil {
			return nil, o.errorf(i, err)
		}
		o.templates = append(o.templates, t)
		first, err := o.render(i, 0, 1)
		if err != nil {
			return nil, err
		}
		last, err := o.render(i, b.Iterations-1, b.Templates[i].Replicas)
		if err != nil {
			return nil, err
		}
		switch {
		case len(first) == 0:
			return nil, o.errorf(i, errors.New("it renders no manifest"))
		case len(first) != len(last):
			return nil, o.errorf(i, fmt.Errorf("it renders %d manifests for the first replica and %d for the last: write as many for each", len(first), len(last)))
		}
		o.documents = append(o.documents, len(first))
		o.iteration += b.Templates[i].Replicas * len(first)
		if err := o.check(i, first, last); err != nil {
			return nil, err
		}
		o.count(i, first)
		if err := o.shape(i); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// count adds the kinds of the documents of template i.
func (o *Objects) count(i int, documents []map[string]any) {
	o.kindOf = append(o.kindOf, make([]int, len(documents)))
	for d, manifest := range documents {
		one := describe(manifest)
		at := slices.IndexFunc(o.kinds, func(k ObjectKind) bool { return k.APIVersion == one.APIVersion && k.Kind == one.Kind })
		if at < 0 {
			at, o.kinds = len(o.kinds), append(o.kinds, ObjectKind{APIVersion: one.APIVersion, Kind: one.Kind})
		}
		o.kindOf[i][d] = at
		o.kinds[at].Count += o.batch.Templates[i].Replicas * o.batch.Iterations
	}
}

// check refuses manifests that are not whole, and two objects of one name.
func (o *Objects) check(i int, first, last []map[string]any) error {
	b := o.batch
	shared := b.Templates[i].Replicas > 1 || b.Iterations > b.Namespaces
	for d, manifest := range first {
		one := describe(manifest)
		switch {
		case one.APIVersion == "" || one.Kind == "":
			return o.at(i, d, "write apiVersion:, kind: and metadata: {name: ...}", "a manifest without apiVersion or kind")
		case one.Name == "" && !generated(manifest):
			return o.at(i, d, "write metadata: {name: web-{{.Iteration}}-{{.Replica}}}", "a %s without a name", one.Kind)
		case shared && one.Name != "" && one.Name == describe(last[d]).Name:
			return o.at(i, d, "put {{.Replica}} or {{.Iteration}} into it", "all objects have the name %q", one.Name)
		}
		if known := kindHint(one.APIVersion, one.Kind); known != "" {
			return o.at(i, d, known, "Kubernetes has no %s of %s", one.Kind, one.APIVersion)
		}
	}
	return nil
}

func generated(manifest map[string]any) bool {
	meta, _ := manifest["metadata"].(map[string]any)
	name, _ := meta["generateName"].(string)
	return name != ""
}

// kindHint is what is meant by a kind of a group of Kubernetes' own that has none such, else "".
func kindHint(apiVersion, kind string) string {
	group := ""
	if gv, err := schema.ParseGroupVersion(apiVersion); err == nil {
		group = gv.Group
	}
	var kinds []string
	for name, of := range builtIns() {
		switch {
		case of.kind == kind && slices.Contains(of.versions, apiVersion):
			return ""
		case groupOf(name) == group:
			kinds = append(kinds, of.kind)
		}
	}
	if len(kinds) == 0 {
		return "" // a custom resource: only a cluster knows
	}
	for _, of := range builtIns() {
		if of.kind == kind {
			return "write apiVersion: " + of.versions[0]
		}
	}
	slices.Sort(kinds)
	return strictyaml.Hint(kind, slices.Compact(kinds), "as `kubectl api-resources` lists it")
}

func describe(manifest map[string]any) Object {
	o := Object{Manifest: manifest}
	o.APIVersion, _ = manifest["apiVersion"].(string)
	o.Kind, _ = manifest["kind"].(string)
	meta, _ := manifest["metadata"].(map[string]any)
	o.Name, _ = meta["name"].(string)
	return o
}

// values are what template i is rendered with, and the turn of what it draws.
func (o *Objects) values(i, iteration, replica int) (values map[string]any, turn uint64) {
	values = map[string]any{"Iteration": iteration, "Replica": replica, "JobName": o.batch.Name}
	maps.Copy(values, o.batch.Vars)
	maps.Copy(values, o.batch.Templates[i].Vars)
	return values, uint64(i)<<56 | uint64(iteration)<<28 | uint64(replica)
}

// render gives the documents of template i.
func (o *Objects) render(i, iteration, replica int) ([]map[string]any, error) {
	values, turn := o.values(i, iteration, replica)
	all, err := o.templates[i].Documents(values, o.seed, turn)
	if err != nil {
		return nil, o.errorf(i, err)
	}
	return all, nil
}

// errorf is an error of template i: at its own line in its file, or at the scenario's field.
func (o *Objects) errorf(i int, err error) error {
	t := &o.batch.Templates[i]
	of := &template.Error{Msg: err.Error()}
	errors.As(err, &of)
	if t.from != "" {
		return &strictyaml.Error{File: t.from, Line: of.Line, Msg: of.Msg, Hint: of.Hint}
	}
	path := fmt.Sprintf("%s.templates[%d]", o.batch.Path, i)
	if t.Text == "" {
		return o.scenario.Errorf(path+".object", of.Hint, "%s", of.Msg)
	}
	msg := of.Msg
	if of.Line > 0 {
		msg = fmt.Sprintf("line %d of the text: %s", of.Line, msg)
	}
	return o.scenario.Errorf(path+".text", of.Hint, "%s", msg)
}

func (o *Objects) at(i, document int, hint, format string, args ...any) error {
	return o.errorf(i, &template.Error{Line: o.templates[i].Line(document), Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// String is the kinds with their numbers.
func (o *Objects) String() string {
	var parts []string
	for _, k := range o.kinds {
		parts = append(parts, fmt.Sprintf("%d %s", k.Count, k.Kind))
	}
	return strings.Join(parts, ", ")
}

// Len is how many objects there are.
func (o *Objects) Len() int { return o.iteration * o.batch.Iterations }

// Kinds are the kinds of object of the first replicas, each once, in their order.
func (o *Objects) Kinds() []ObjectKind { return o.kinds }

// KindAt is the kind of the object of a number, an index into Kinds.
func (o *Objects) KindAt(n int) int {
	i, _, _, document := o.split(n)
	return o.kindOf[i][document]
}

// Firsts are the first object of each kind.
func (o *Objects) Firsts() ([]Object, error) {
	var all []Object
	seen := map[int]bool{}
	for n := 0; n < o.iteration && len(seen) < len(o.kinds); n++ {
		if kind := o.KindAt(n); !seen[kind] {
			seen[kind] = true
			one, err := o.At(n)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// split is what an object's number stands for: template, iteration, replica and document.
func (o *Objects) split(n int) (i, iteration, replica, document int) {
	iteration, rest := n/o.iteration, n%o.iteration
	for ; ; i++ {
		size := o.batch.Templates[i].Replicas * o.documents[i]
		if rest < size {
			break
		}
		rest -= size
	}
	return i, iteration, rest/o.documents[i] + 1, rest % o.documents[i]
}

// At is the object of a number, whose manifest is the caller's. Those that follow each other cost least.
func (o *Objects) At(n int) (Object, error) {
	i, iteration, replica, document := o.split(n)
	if first := n - document; o.rendered != first {
		all, err := o.render(i, iteration, replica)
		if err != nil {
			return Object{}, err
		}
		if len(all) != o.documents[i] {
			return Object{}, o.errorf(i, fmt.Errorf("it renders %d manifests for replica %d of iteration %d, and %d for the first", len(all), replica, iteration, o.documents[i]))
		}
		o.rendered, o.held = first, all
	}
	one := describe(o.held[document])
	one.Namespace = iteration * o.batch.Namespaces / o.batch.Iterations
	one.Placement, one.Place = o.batch.Placement, o.place(i, document)
	return one, nil
}

// shape finds the shape of template i.
func (o *Objects) shape(i int) error {
	values, turn := o.values(i, 0, 1)
	s, err := o.templates[i].NewShape(values, o.seed, turn)
	if err != nil {
		return o.errorf(i, err)
	}
	if s != nil && len(s.Documents) == o.documents[i] {
		for d, document := range s.Documents {
			if one, k := describe(document), o.kinds[o.kindOf[i][d]]; one.APIVersion != k.APIVersion || one.Kind != k.Kind {
				s = nil // another kind of object each time
				break
			}
		}
		o.shapes = append(o.shapes, s)
		return nil
	}
	o.shapes = append(o.shapes, nil)
	return nil
}

// Outline is what the object of a number has in common with others, with slots for the rest, of which there are so many;
// others with its key have the same. Nil: nothing is known.
func (o *Objects) Outline(n int) (outline *Object, key [2]int, slots int) {
	i, _, _, d := o.split(n)
	s := o.shapes[i]
	if s == nil {
		return nil, key, 0
	}
	one := describe(s.Documents[d])
	one.Placement, one.Place = o.batch.Placement, o.place(i, d)
	return &one, [2]int{i, d}, s.Slots()
}

// Slots are the values for the slots of an object's outline, and its namespace. Not ok: At gives the object.
func (o *Objects) Slots(n int) (slots []string, namespace int, ok bool, err error) {
	i, iteration, replica, document := o.split(n)
	if o.shapes[i] == nil {
		return nil, 0, false, nil
	}
	if first := n - document; o.filled != first {
		values, turn := o.values(i, iteration, replica)
		if o.slots, o.fits, err = o.templates[i].Values(o.shapes[i], values, o.seed, turn); err != nil {
			return nil, 0, false, o.errorf(i, err)
		}
		o.filled = first
	}
	return o.slots, iteration * o.batch.Namespaces / o.batch.Iterations, o.fits, nil
}

// place is where a document of a template begins.
func (o *Objects) place(i, document int) string {
	t := &o.batch.Templates[i]
	line := o.templates[i].Line(document)
	switch {
	case t.from != "":
		return fmt.Sprintf("%s:%d", t.from, line)
	case t.Text != "":
		return fmt.Sprintf("%s.templates[%d], line %d", o.batch.Path, i, line)
	}
	return fmt.Sprintf("%s.templates[%d]", o.batch.Path, i)
}

// ResourceOf is the resource of a kind, as "deployments.apps": of Kubernetes' own, or as custom resources are
// mostly named.
func ResourceOf(apiVersion, kind string) string {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	for name, of := range builtIns() {
		if of.kind == kind && groupOf(name) == gv.Group {
			return name
		}
	}
	plural := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(plural, "s"), strings.HasSuffix(plural, "x"), strings.HasSuffix(plural, "ch"), strings.HasSuffix(plural, "sh"):
		plural += "es"
	case strings.HasSuffix(plural, "y"):
		plural = strings.TrimSuffix(plural, "y") + "ies"
	default:
		plural += "s"
	}
	if gv.Group == "" {
		return plural
	}
	return plural + "." + gv.Group
}
