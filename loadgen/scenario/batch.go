package scenario

import (
	"context"
	"errors"
	"fmt"
)

// Batch creates objects from templates. Each template is rendered for each iteration and replica.
type Batch struct {
	Templates []Template `yaml:"templates,omitempty"` // templates of the objects, rendered in this order
	// Iterations: how often all templates are rendered; {{.Iteration}} counts from 0; default: one for each namespace
	Iterations int `yaml:"iterations,omitempty" zero:"one for each namespace"`
	// FromIteration: first iteration to create; earlier iterations are skipped, not renumbered
	FromIteration int `yaml:"fromIteration,omitempty"`
	ToIteration   int `yaml:"toIteration,omitempty" zero:"all"` // create only the iterations before this one; default all
	// Namespaces: number of namespaces that share the iterations evenly; default: all of `namespaceGroup`, else 1 (the
	// run's namespace)
	Namespaces int `yaml:"namespaces,omitempty" zero:"1, or all of namespaceGroup"`
	// NamespaceGroup: namespace group in which to create the objects
	NamespaceGroup string `yaml:"namespaceGroup,omitempty"`
	// IterationsPerNamespace: number of iterations in each namespace; the last namespace may get fewer; sets
	// `namespaces`
	IterationsPerNamespace int            `yaml:"iterationsPerNamespace,omitempty" zero:"spread evenly; leave it out to use the default"`
	Vars                   map[string]any `yaml:"vars,omitempty"` // variables of the templates, as {{.NAME}}
	// Placement: "nodes" adds a node selector and tolerations for the simulated nodes to pods and pod templates (the
	// default with simulated nodes); "none" adds nothing
	Placement string `yaml:"placement,omitempty"`
}

// Template is one or several manifests, written as a Go template with sprig's functions; set one of `file`, `text` and
// `object`.
type Template struct {
	// File: path of a file with manifests, relative to the scenario file. A directory stands for the output of its
	// kustomization or, without a kustomization, for its files *.yaml, *.yml and *.json
	File   string `yaml:"file,omitempty"`
	Text   string `yaml:"text,omitempty"`   // manifests, as one or several YAML documents
	Object any    `yaml:"object,omitempty"` // manifest, as YAML whose strings are templates
	// Replicas: number of objects to create from each document in each iteration, default 1; {{.Replica}} counts from 1
	Replicas int `yaml:"replicas,omitempty" zero:"1"`
	// EveryIterations: render the template only in every Nth iteration, starting with the first; {{.Iteration}} then
	// counts only these iterations
	EveryIterations int `yaml:"everyIterations,omitempty" zero:"1"`
	// Vars: variables of the template; they take precedence over the `vars` of the batch
	Vars map[string]any `yaml:"vars,omitempty"`

	from string // the file from which Text was read
}

// Has reports whether the batch has templates.
func (b *Batch) Has() bool { return len(b.Templates) > 0 }

// PlacedBatch is a batch with its location in the scenario.
type PlacedBatch struct {
	*Batch
	// Name is the name of the load or action that contains the batch. Templates use it as {{.JobName}}.
	Name string
	// Path is the batch's field in the scenario. Phase is the phase of its action or load, or "teardown". It is "" for
	// objects and background loads.
	Path, Phase string
	// Verbs are the RBAC verbs needed to create the objects, separated by spaces.
	Verbs string
	// OfLoad is true if a load creates the objects, with the load's identity.
	OfLoad bool

	templates *[]Template // points to the templates in the scenario, because the Batch of a load is a copy
}

// Batches lists all batches with their paths, in this order: objects, actions, teardown, loads.
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

// Batch returns a copy of the fields of a load of kind "objects". For other kinds, the result is an empty Batch, whose
// method Has returns false.
func (l *Load) Batch() *Batch {
	return &Batch{
		Templates: l.Templates, Iterations: l.Iterations, FromIteration: l.FromIteration, ToIteration: l.ToIteration,
		Namespaces: l.Namespaces, NamespaceGroup: l.NamespaceGroup, IterationsPerNamespace: l.IterationsPerNamespace,
		Vars: l.Vars, Placement: l.Placement,
	}
}

// span returns the range of iterations to create. The range includes `from` and excludes `to`.
func (b *Batch) span() (from, to int) {
	if b.ToIteration == 0 {
		return b.FromIteration, b.Iterations
	}
	return b.FromIteration, b.ToIteration
}

// every returns N if the template is rendered only in every Nth iteration, else 1.
func (t *Template) every() int { return max(t.EveryIterations, 1) }

// times returns in how many of the given number of iterations the template is rendered.
func (t *Template) times(iterations int) int { return (iterations + t.every() - 1) / t.every() }

func (b *Batch) setDefaults() {
	if !b.Has() {
		return
	}
	orDefault(&b.Namespaces, 1)
	orDefault(&b.Iterations, b.Namespaces*max(b.IterationsPerNamespace, 1))
	orDefault(&b.Placement, "nodes")
	for i := range b.Templates {
		orDefault(&b.Templates[i].Replicas, 1)
	}
}

// Limits of a batch. Higher numbers are assumed to be a mistake.
const (
	maxBatch           = 1_000_000
	maxBatchNamespaces = 10_000
)

// batchShape checks all fields of a batch except the text of its templates, which may be in files.
func (v *validator) batchShape(path string, b *Batch) {
	v.between(path+".iterations", float64(b.Iterations), 1, maxBatch)
	v.batchNamespaces(path, b)
	switch from, to := b.span(); {
	case b.FromIteration < 0 || b.FromIteration >= b.Iterations:
		v.fail(path+".fromIteration", fmt.Sprintf("from 0 to %d", b.Iterations-1), "iteration %d does not exist: there are %d", b.FromIteration, b.Iterations)
	case to > b.Iterations:
		v.fail(path+".toIteration", fmt.Sprintf("at most %d", b.Iterations), "this load has only %d iterations", b.Iterations)
	case to <= from:
		v.fail(path+".toIteration", fmt.Sprintf("greater than %d, or leave it out to run all iterations", from), "the range is empty: it begins at iteration %d and ends before iteration %d", from, to)
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
			v.fail(at, "write file: web.yaml, text: or object:", "this template has no manifest")
		case given > 1:
			v.fail(at, "write only one of file, text and object", "this template has %d manifests instead of one", given)
		}
	}
	if sum > maxBatch {
		v.fail(path+".iterations", fmt.Sprintf("at most %d objects", maxBatch), "%d objects", sum)
	}
}

// readTemplates reads the template files of the scenario and its variants, and renders the first and the last object of
// each template. Relative paths are relative to dir.
func (s *Scenario) readTemplates(ctx context.Context, dir string) error {
	var errs []error
	for _, b := range s.Batches() {
		errs = append(errs, s.readBatch(ctx, dir, b))
	}
	if err := errors.Join(errs...); err != nil { // the variants would report the same errors
		return err
	}
	for _, v := range s.variants {
		errs = append(errs, v.readTemplates(ctx, dir))
	}
	return errors.Join(errs...)
}

func (s *Scenario) readBatch(ctx context.Context, dir string, b PlacedBatch) error {
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
		texts, err := readManifests(ctx, dir, t.File)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return s.Errorf(path+".file", "a relative path is relative to the directory of the scenario file", "cannot read %s: %v", t.File, err)
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
