// Package batch implements loads of kind "objects", which create the objects of a batch, one object per arrival.
// Manifests are rendered before their arrivals, in a separate goroutine.
package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/objects"
	"github.com/stormglass/stormglass/loadgen/internal/template"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// ahead is the maximum number of manifests that are rendered before their arrivals are due.
const ahead = 1024

// Load is a load that creates the objects of a batch.
type Load struct {
	*request.Requests
	op *operation
}

// New returns a load of kind "objects". It sends no request.
func New(t load.Target, l scenario.Load, all *scenario.Objects, pacer arrival.Pacer) (*Load, error) {
	op, err := newOperation(t, all)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	requests, err := request.New(t, l, op, limited{pacer, int64(all.Len())})
	if err != nil {
		return nil, err
	}
	return &Load{requests, op}, nil
}

// Run creates the objects until ctx ends. It fails if rendering a manifest fails.
func (l *Load) Run(ctx context.Context) error {
	if err := l.Requests.Run(ctx); err != nil {
		return err
	}
	return l.op.failed
}

// limited is a Pacer that has only the first n arrivals of another Pacer.
type limited struct {
	arrival.Pacer
	n int64
}

func (p limited) At(n int64) time.Duration {
	if n >= p.n {
		return arrival.Never
	}
	return p.Pacer.At(n)
}

func (p limited) Due(elapsed time.Duration) int64 { return min(p.Pacer.Due(elapsed), p.n) }

// operation is the request.Operation that creates the objects of a batch.
type operation struct {
	objects   *scenario.Objects
	options   objects.Options
	target    load.Target
	templates *request.Templates
	template  *request.Template
	kinds     []request.Kind
	resources []objects.Resource
	outlines  map[[2]int]*outline
	paths     map[[2]int][]byte // paths of collections, by the indexes of kind and namespace

	ahead *stock
	next  int // number of the next object to render
	step  int // number of workers: this worker renders every step-th object
	slots []string

	failed error // the error that ended Background; valid after Background
}

func newOperation(t load.Target, all *scenario.Objects) (*operation, error) {
	var err error
	o := &operation{
		objects: all, target: t, next: t.Share.Index, step: int(t.Share.Step()), ahead: newStock(ahead), outlines: map[[2]int]*outline{}, paths: map[[2]int][]byte{},
		options: objects.Options{Namespaces: t.Namespaces, Labels: t.Labels, NodeSelector: t.NodeSelector, Tolerations: t.Tolerations},
	}
	for _, k := range all.Kinds() {
		o.kinds = append(o.kinds, request.Kind{Verb: "create", Resource: builtin.ResourceOf(k.APIVersion, k.Kind)})
	}
	if o.templates, err = request.NewTemplates(t); err != nil {
		return nil, err
	}
	o.template = o.templates.New(http.MethodPost, "application/json", "application/json", nil)
	return o, nil
}

func (o *operation) Kinds() []request.Kind { return o.kinds }

// KindOf returns the index in Kinds of the n-th object's kind.
func (o *operation) KindOf(n int64) int { return o.objects.KindAt(int(n)) }

// Prepare finds the resources and renders the first objects.
func (o *operation) Prepare(context.Context) error {
	mapper, err := objects.Mapper(o.target.Config)
	if err != nil {
		return err
	}
	firsts, err := o.objects.Firsts()
	if err != nil {
		return err
	}
	o.resources = nil // an earlier call may have failed halfway
	for _, first := range firsts {
		r, err := objects.ResourceOf(mapper, first)
		if err != nil {
			return err
		}
		o.resources = append(o.resources, r)
	}
	for o.next < o.objects.Len() && !o.ahead.full() {
		if err := o.ahead.fill(o.render); err != nil {
			return err
		}
	}
	return nil
}

// outline is the common JSON text of all objects that one document of a template renders. It has a slot for each value
// that differs between the objects.
type outline struct {
	json  template.JSON
	slots int // number of slots, without the namespace's slot
}

// outlineOf returns the outline for object n, or nil if the object must be rendered separately. It caches one outline
// per document.
func (o *operation) outlineOf(n int, r objects.Resource) (*outline, error) {
	key := o.objects.DocumentAt(n)
	if known, ok := o.outlines[key]; ok {
		return known, nil
	}
	object, slots := o.objects.Outline(n)
	if object == nil {
		o.outlines[key] = nil
		return nil, nil
	}
	options := o.options
	options.Namespaces = []string{template.Slot(slots)}
	options.Complete(*object, r.Namespaced)
	j, err := template.NewJSON(object.Manifest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", object.Place, err)
	}
	o.outlines[key] = &outline{j, slots}
	return o.outlines[key], nil
}

// render renders the next object into a request.
func (o *operation) render(into *rendered) error {
	n := o.next
	kind := o.objects.KindAt(n)
	r := o.resources[kind]
	body, namespace, err := o.body(into.body[:0], n, r)
	if err != nil {
		return err
	}
	o.next += o.step
	into.n, into.body = int64(n), body
	into.path = append(into.path[:0], o.pathOf(kind, namespace)...)
	return nil
}

func (o *operation) pathOf(kind, namespace int) []byte {
	key := [2]int{kind, namespace}
	path, ok := o.paths[key]
	if !ok {
		path = []byte(o.templates.Prefix() + o.resources[kind].Path(o.target.Namespaces[namespace]) + "?fieldManager=" + objects.Creator(o.target.Labels))
		o.paths[key] = path
	}
	return path
}

// body appends the manifest of object n as JSON to b, and returns the index of the object's namespace. If the object
// has an outline, body fills in the outline's values. Otherwise it renders the template.
func (o *operation) body(b []byte, n int, r objects.Resource) (body []byte, namespace int, err error) {
	common, err := o.outlineOf(n, r)
	if err != nil {
		return nil, 0, err
	}
	if common != nil {
		slots, namespace, ok, err := o.objects.Slots(n)
		if err != nil {
			return nil, 0, err
		}
		if ok {
			o.slots = append(append(o.slots[:0], slots...), o.target.Namespaces[namespace])
			return common.json.Append(b, o.slots), namespace, nil
		}
	}
	object, err := o.objects.At(n)
	if err != nil {
		return nil, 0, err
	}
	o.options.Complete(object, r.Namespaced)
	text, err := json.Marshal(object.Manifest)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: write %s as JSON: %w", object.Place, &object, err)
	}
	return append(b, text...), object.Namespace, nil
}

// Background renders objects before their arrivals, and renews the bearer token, until ctx ends.
func (o *operation) Background(ctx context.Context) {
	var renewal sync.WaitGroup
	defer renewal.Wait()
	renewal.Go(func() { o.templates.Renew(ctx) })
	for o.next < o.objects.Len() && o.ahead.awaitRoom(ctx) {
		if err := o.ahead.fill(o.render); err != nil {
			o.failed = err
			return
		}
	}
}

// Next fills in the request for object n. It returns false if the generator was too slow to render the object before
// its arrival. The arrival then counts as unsent.
func (o *operation) Next(n int64, r *request.Request) bool {
	for found := false; !found; {
		more := o.ahead.take(func(one *rendered) {
			if found = one.n >= n; found { // skip objects whose arrivals were not sent
				r.Path = append(r.Path[:0], one.path...)
				r.Body = append(r.Body[:0], one.body...)
			}
		})
		if !more {
			return false
		}
	}
	r.Template = o.template.Load()
	return true
}

// Data ignores the body of the response.
func (o *operation) Data(*request.Request, int, []byte) error { return nil }

// Unhurried implements request.Unhurried.
func (o *operation) Unhurried() {}

// Done does nothing.
func (o *operation) Done(*request.Request, load.Outcome, time.Time) bool { return false }
