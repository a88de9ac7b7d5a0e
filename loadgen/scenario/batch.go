package scenario

import (
	"errors"
	"fmt"
)

// Batch is objects made from templates: for each iteration, of each template, of each
// replica.
type Batch struct {
	Templates []Template `yaml:"templates,omitempty"` // in this order
	// Iterations: of all templates, {{.Iteration}} in them, from 0; default one for each namespace
	Iterations int `yaml:"iterations,omitempty" zero:"one for each namespace"`
	// FromIteration: the first that is made, with the number, names and namespace that it has among
	// all; default 0
	FromIteration int `yaml:"fromIteration,omitempty"`
	// ToIteration: only those before it are made; default all
	ToIteration int `yaml:"toIteration,omitempty" zero:"all"`
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
	// EveryIterations: made in each so many-th iteration only, the first among them, and
	// {{.Iteration}} counts those; default 1
	EveryIterations int `yaml:"everyIterations,omitempty" zero:"1"`
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
	// Path of the batch in the file, and the phase whose action or load it is of; "": it is of none.
	Path, Phase string
	// Verbs are the permissions that making its objects needs, apart by spaces.
	Verbs string
	// OfLoad: its objects are made by the identity of load.
	OfLoad bool

	templates *[]Template // where they are, of a load too
}

// Batches lists every batch with the path of each: objects, those of actions, of the teardown, of loads.
func (s *Scenario) Batches() []PlacedBatch {
	var all []PlacedBatch
	for i := range s.Objects {
		b := &s.Objects[i]
		all = append(all, PlacedBatch{Batch: b, Name: "objects", Path: fmt.Sprintf("objects[%d]", i), Verbs: "create", templates: &b.Templates})
	}
	for _, a := range s.objectActions() {
		if a.Has() {
			all = append(all, PlacedBatch{Batch: &a.Batch, Name: a.in, Path: a.path, Phase: a.in, Verbs: a.batchVerbs(), templates: &a.Templates})
		}
	}
	for _, l := range s.Loads() {
		if b := l.Batch(); b.Has() {
			all = append(all, PlacedBatch{Batch: b, Name: l.Name, Path: l.Path, Phase: l.Phase, Verbs: "create", OfLoad: true, templates: &l.Templates})
		}
	}
	return all
}

// Batch is that of a load of objects.
func (l *Load) Batch() *Batch {
	return &Batch{
		Templates: l.Templates, Iterations: l.Iterations, FromIteration: l.FromIteration, ToIteration: l.ToIteration,
		Namespaces: l.Namespaces, Vars: l.Vars, Placement: l.Placement,
	}
}

// span is the iterations that are made, from one up to another.
func (b *Batch) span() (from, to int) {
	if b.ToIteration == 0 {
		return b.FromIteration, b.Iterations
	}
	return b.FromIteration, b.ToIteration
}

// every is the number of iterations of which a template is made in one.
func (t *Template) every() int { return max(t.EveryIterations, 1) }

// times is in how many of the first iterations the template is made.
func (t *Template) times(iterations int) int { return (iterations + t.every() - 1) / t.every() }

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
	switch from, to := b.span(); {
	case b.FromIteration < 0 || b.FromIteration >= b.Iterations:
		v.fail(path+".fromIteration", fmt.Sprintf("from 0 to %d", b.Iterations-1), "there is no iteration %d of %d", b.FromIteration, b.Iterations)
	case to > b.Iterations:
		v.fail(path+".toIteration", fmt.Sprintf("at most %d", b.Iterations), "there are %d iterations", b.Iterations)
	case to <= from:
		v.fail(path+".toIteration", fmt.Sprintf("over %d, or leave it out for all", from), "no iteration is from %d and before %d", from, to)
	}
	v.oneOf(path+".placement", b.Placement, "nodes", "none")
	sum := 0
	for i := range b.Templates {
		t, at := &b.Templates[i], fmt.Sprintf("%s.templates[%d]", path, i)
		v.between(at+".replicas", float64(t.Replicas), 1, maxBatch)
		if t.EveryIterations != 0 {
			v.between(at+".everyIterations", float64(t.EveryIterations), 1, maxBatch)
		}
		sum += t.Replicas * t.times(b.Iterations)
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
	if sum > maxBatch {
		v.fail(path+".iterations", fmt.Sprintf("at most %d objects", maxBatch), "%d objects", sum)
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
	*b.templates, b.Templates = read, read
	return s.checkBatch(b)
}
