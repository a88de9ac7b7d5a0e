// Package batch is loads of kind "objects": each object of a batch is created once, when
// its arrival is due. Manifests are rendered ahead of their arrivals, beside the engine.
package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/objects"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// ahead is how many manifests are rendered before their arrivals.
const ahead = 1024

// Load creates the objects of a batch.
type Load struct {
	*request.Requests
	op *operation
}

// New makes the load. It sends nothing yet.
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

// Run creates the objects until ctx ends. An error is that of a manifest that could not be rendered.
func (l *Load) Run(ctx context.Context) error {
	if err := l.Requests.Run(ctx); err != nil {
		return err
	}
	return l.op.failure()
}

// limited has no arrivals after the first n.
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

// operation makes the requests of a batch.
type operation struct {
	objects   *scenario.Objects
	options   objects.Options
	target    load.Target
	templates *request.Templates
	template  *request.Template
	kinds     []request.Kind
	resources []objects.Resource

	rendered chan rendered
	next     int // to be rendered

	mu     sync.Mutex
	failed error
}

// rendered is one object's request.
type rendered struct {
	n    int64
	path string
	body []byte
}

func newOperation(t load.Target, all *scenario.Objects) (*operation, error) {
	var err error
	o := &operation{
		objects: all, target: t, rendered: make(chan rendered, ahead),
		options: objects.Options{Namespaces: t.Namespaces, Labels: t.Labels, NodeSelector: t.NodeSelector, Tolerations: t.Tolerations},
	}
	for _, k := range all.Kinds() {
		o.kinds = append(o.kinds, request.Kind{Verb: "create", Resource: scenario.ResourceOf(k.APIVersion, k.Kind)})
	}
	if o.templates, err = request.NewTemplates(t); err != nil {
		return nil, err
	}
	o.template = o.templates.New(http.MethodPost, "application/json", "application/json", nil)
	return o, nil
}

func (o *operation) Kinds() []request.Kind { return o.kinds }

// KindOf is the kind of object n.
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
	for _, first := range firsts {
		r, err := objects.ResourceOf(mapper, first)
		if err != nil {
			return err
		}
		o.resources = append(o.resources, r)
	}
	for o.next < o.objects.Len() && len(o.rendered) < cap(o.rendered) {
		one, err := o.render()
		if err != nil {
			return err
		}
		o.rendered <- one
	}
	return nil
}

func (o *operation) render() (rendered, error) {
	object, err := o.objects.At(o.next)
	if err != nil {
		return rendered{}, err
	}
	r := o.resources[o.objects.KindAt(o.next)]
	o.options.Complete(object, r.Namespaced)
	body, err := json.Marshal(object.Manifest)
	if err != nil {
		return rendered{}, fmt.Errorf("%s: write %s as JSON: %w", object.Place, &object, err)
	}
	path := o.templates.Prefix() + r.Path(o.target.Namespaces[object.Namespace]) + "?fieldManager=stormglass"
	o.next++
	return rendered{int64(o.next - 1), path, body}, nil
}

// Background renders the objects ahead of their arrivals, and renews the identity.
func (o *operation) Background(ctx context.Context) {
	var renewal sync.WaitGroup
	defer renewal.Wait()
	renewal.Go(func() { o.templates.Renew(ctx) })
	for o.next < o.objects.Len() {
		one, err := o.render()
		if err != nil {
			o.fail(err)
			return
		}
		select {
		case o.rendered <- one:
		case <-ctx.Done():
			return
		}
	}
}

func (o *operation) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = err
	}
}

func (o *operation) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// Next takes object n. One that is not rendered yet is unsent: the generator is too slow.
func (o *operation) Next(n int64, r *request.Request) bool {
	for {
		select {
		case one := <-o.rendered:
			if one.n < n { // its arrival was unsent
				continue
			}
			r.Path = append(r.Path[:0], one.path...)
			r.Body = append(r.Body[:0], one.body...)
			r.Template = o.template.Load()
			return true
		default:
			return false
		}
	}
}

// Data reads past answers.
func (o *operation) Data(*request.Request, int, []byte) error { return nil }

// Done needs no more of an answer.
func (o *operation) Done(*request.Request, load.Outcome, time.Time) bool { return false }
