package scenario

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/template"
)

// Objects are the objects of a batch, ordered by iteration, then template, then replica,
// then document. An Objects value is not safe for concurrent use.
type Objects struct {
	batch     PlacedBatch
	scenario  *Scenario
	seed      int64
	templates []*template.Template
	named     []bool            // for each template, whether its text uses .Namespace
	shapes    []*template.Shape // common structure of each template's objects; nil if unknown
	documents []int             // number of YAML documents of each template
	iteration int               // number of objects of the first iteration, which uses all templates
	even      bool              // all iterations have the same number of objects
	from, to  int               // iterations to create
	skipped   int               // number of objects of the iterations before the iteration `from`
	first     int               // index in Scenario.BatchNamespaces of the batch's first namespace
	indexes   map[string]int    // index in Scenario.BatchNamespaces of each namespace of a group

	kinds  []ObjectKind
	kindOf [][]int // index in `kinds` of each object's kind, by template and document
	// round: index in `kinds` of each object of an iteration; nil if iterations differ or have more than longestRound
	// objects
	round []int
	lines [][]int // line where each document begins, by template and document

	rendered int // index of the first object in `held`; math.MinInt if `held` is empty
	held     []map[string]any

	filled int // index of the first object whose values are in `slots`; math.MinInt if `slots` is empty
	slots  []string
	fits   bool
}

// ObjectKind is a kind of object in a batch.
type ObjectKind struct {
	APIVersion, Kind string
	// Count is the number of objects of the kind.
	Count int
}

// Object is one object of a batch.
type Object struct {
	Manifest map[string]any
	// APIVersion, Kind and Name are the fields of the manifest. Name is empty if the manifest has generateName.
	APIVersion, Kind, Name string
	// Namespace is the index of the object's namespace in Scenario.BatchNamespaces.
	Namespace int
	// Named is true if the manifest may contain NamespaceMark instead of a namespace's name.
	Named bool
	// Placement is a copy of the batch's field Placement.
	Placement string
	// Place is where the manifest begins, for errors: FILE:LINE, or the location in the scenario.
	Place string
}

// NamespaceMark is the value of {{.Namespace}} in rendered manifests. The run replaces it with the namespace's name.
const NamespaceMark = "namespace-of-the-object"

// String returns the kind and the name.
func (o *Object) String() string { return o.Kind + " " + o.Name }

// Expand compiles the templates of a batch, and renders the first and the last object of each template. Errors name the
// file, line and field.
func (s *Scenario) Expand(b PlacedBatch) (*Objects, error) {
	o := &Objects{batch: b, scenario: s, seed: s.Seed, rendered: math.MinInt, filled: math.MinInt, even: true}
	o.from, o.to = b.span()
	if o.indexes = s.groupIndexes(); b.NamespaceGroup != "" {
		if g := s.NamespaceGroup(b.NamespaceGroup); g != nil {
			o.first = o.indexes[g.Names()[0]]
		}
	}
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
		o.named = append(o.named, strings.Contains(text, ".Namespace"))
		first, err := o.render(i, 0, 1)
		if err != nil {
			return nil, err
		}
		of := &b.Templates[i]
		last, err := o.render(i, (of.times(b.Iterations)-1)*of.every(), of.Replicas)
		if err != nil {
			return nil, err
		}
		switch {
		case len(first) == 0:
			return nil, o.errorf(i, errors.New("the template renders no manifest"))
		case len(first) != len(last):
			return nil, o.errorf(i, fmt.Errorf("the template renders %d manifests for the first replica, but %d for the last; the numbers must be equal", len(first), len(last)))
		}
		o.documents = append(o.documents, len(first))
		o.iteration += of.Replicas * len(first)
		o.even = o.even && of.every() == 1
		if err := o.check(i, first); err != nil {
			return nil, err
		}
		o.count(i, first)
		if err := o.shape(i); err != nil {
			return nil, err
		}
	}
	o.skipped = o.upTo(o.from)
	if o.even && o.iteration <= longestRound {
		round := make([]int, o.iteration)
		for n := range round {
			round[n] = o.KindAt(n - o.skipped)
		}
		o.round = round
	}
	return o, nil
}

func (o *Objects) count(i int, documents []map[string]any) {
	o.kindOf, o.lines = append(o.kindOf, make([]int, len(documents))), append(o.lines, make([]int, len(documents)))
	for d, manifest := range documents {
		o.lines[i][d] = o.templates[i].Line(d, len(documents))
		one := describe(manifest)
		at := slices.IndexFunc(o.kinds, func(k ObjectKind) bool { return k.APIVersion == one.APIVersion && k.Kind == one.Kind })
		if at < 0 {
			at, o.kinds = len(o.kinds), append(o.kinds, ObjectKind{APIVersion: one.APIVersion, Kind: one.Kind})
		}
		o.kindOf[i][d] = at
		t := &o.batch.Templates[i]
		o.kinds[at].Count += t.Replicas * (t.times(o.to) - t.times(o.from))
	}
}

// check returns an error if a manifest in `first` has no apiVersion, kind or name, or has an unknown kind in one of
// Kubernetes' own groups.
func (o *Objects) check(i int, first []map[string]any) error {
	for d, manifest := range first {
		one := describe(manifest)
		switch {
		case one.APIVersion == "" || one.Kind == "":
			return o.at(i, d, "write apiVersion:, kind: and metadata: {name: ...}", "the manifest has no apiVersion or no kind")
		case one.Name == "" && !generated(manifest):
			return o.at(i, d, "write metadata: {name: web-{{.Iteration}}-{{.Replica}}}", "the %s has no name", one.Kind)
		}
		if known := builtin.UnknownKind(one.APIVersion, one.Kind); known != "" {
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

func describe(manifest map[string]any) Object {
	o := Object{Manifest: manifest}
	o.APIVersion, _ = manifest["apiVersion"].(string)
	o.Kind, _ = manifest["kind"].(string)
	meta, _ := manifest["metadata"].(map[string]any)
	o.Name, _ = meta["name"].(string)
	return o
}

// values returns the variables of template i for one iteration and replica. `turn` selects the random numbers of that
// replica.
func (o *Objects) values(i, iteration, replica int) (values map[string]any, turn uint64) {
	values = map[string]any{
		"Iteration": iteration / o.batch.Templates[i].every(), "Replica": replica, "JobName": o.batch.Name, "Namespace": NamespaceMark,
	}
	maps.Copy(values, o.batch.Vars)
	maps.Copy(values, o.batch.Templates[i].Vars)
	return values, uint64(i)<<56 | uint64(iteration)<<28 | uint64(replica)
}

func (o *Objects) render(i, iteration, replica int) ([]map[string]any, error) {
	values, turn := o.values(i, iteration, replica)
	all, err := o.templates[i].Documents(values, o.seed, turn)
	if err != nil {
		return nil, o.errorf(i, err)
	}
	return all, nil
}

// errorf returns err with its place: the line in the file of template i, or the field of the scenario.
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
	return o.errorf(i, &template.Error{Line: o.templates[i].Line(document, o.documents[i]), Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// String lists the kinds, each with its number of objects.
func (o *Objects) String() string {
	var parts []string
	for _, k := range o.kinds {
		if k.Count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k.Count, k.Kind))
		}
	}
	return strings.Join(parts, ", ")
}

// Len returns the number of objects of the batch.
func (o *Objects) Len() int { return o.upTo(o.to) - o.skipped }

// upTo returns the number of objects in all iterations before the given one.
func (o *Objects) upTo(iteration int) int {
	if o.even {
		return o.iteration * iteration
	}
	n := 0
	for i := range o.documents {
		t := &o.batch.Templates[i]
		n += t.Replicas * o.documents[i] * t.times(iteration)
	}
	return n
}

// Kinds lists the kinds of the objects in the first iteration, without duplicates, in the order of their first object.
func (o *Objects) Kinds() []ObjectKind { return o.kinds }

// longestRound is the maximum number of objects per iteration for which Objects.round stores their kinds.
const longestRound = 4096

// KindAt returns the kind of object n, as an index into Kinds.
func (o *Objects) KindAt(n int) int {
	if o.round != nil {
		return o.round[(n+o.skipped)%o.iteration]
	}
	i, _, _, document := o.split(n)
	return o.kindOf[i][document]
}

// Firsts returns the first object of each kind in the batch.
func (o *Objects) Firsts() ([]Object, error) {
	var all []Object
	seen := map[int]bool{}
	for n := -o.skipped; n < o.iteration-o.skipped && len(seen) < len(o.kinds); n++ {
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

func (o *Objects) split(n int) (i, iteration, replica, document int) {
	n += o.skipped
	iteration, rest := n/o.iteration, n%o.iteration
	if !o.even {
		iteration = sort.Search(o.batch.Iterations, func(m int) bool { return o.upTo(m+1) > n })
		rest = n - o.upTo(iteration)
	}
	for ; ; i++ {
		if iteration%o.batch.Templates[i].every() != 0 {
			continue
		}
		size := o.batch.Templates[i].Replicas * o.documents[i]
		if rest < size {
			break
		}
		rest -= size
	}
	return i, iteration, rest/o.documents[i] + 1, rest % o.documents[i]
}
