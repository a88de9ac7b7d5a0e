package object

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// write returns the action of an operation that writes to the load's own objects.
func (o *operation) write(ctx context.Context, x scenario.Operation, s *Set, picks stream) (action, error) {
	if s.manifest == nil {
		return nil, fmt.Errorf("cannot %s %s: there is no manifest for it (give the load an object of kind %s)", x.Verb, x.Resource, s.resource.kind)
	}
	some := func(method, contentType string) writing {
		return writing{call: o.call(method, x, contentType), set: s, draw: picks}
	}
	var bodies [][]byte
	if x.Body != nil {
		var err error
		if bodies, err = scenario.RenderBodies(x.Body); err != nil {
			return nil, fmt.Errorf("body of %s %s: %w", x.Verb, x.FullResource(), err)
		}
	}
	given := func(b []byte, _ int, n int64) []byte { return append(b, bodies[n%int64(len(bodies))]...) }
	switch x.Verb {
	case "create":
		if x.Subresource == "eviction" {
			s.deletable()
			return &remove{writing: some(http.MethodPost, jsonType), below: below(x), body: given}, nil
		}
		if x.Subresource != "" {
			return &change{writing: some(http.MethodPost, jsonType), query: below(x), body: given}, nil
		}
		// Create no objects beforehand: the creates are the measured requests.
		c := &create{some(http.MethodPost, jsonType)}
		c.draw = newStream(o.seed, o.load.Name, "namespace of new "+x.Resource)
		return c, s.awaitCreate(ctx)
	case "update":
		return &update{writing: some(http.MethodPut, jsonType), below: below(x)}, nil
	case "patch":
		body := given
		if bodies == nil {
			body = func(b []byte, i int, n int64) []byte { return s.AppendPatch(b, i, n, "", nil) }
		}
		return &change{writing: some(http.MethodPatch, scenario.PatchTypes[cmp.Or(x.PatchType, "merge")]), query: below(x), body: body}, nil
	case "apply":
		return &change{writing: some(http.MethodPatch, applyPatchType), query: below(x) + applyQuery, body: func(b []byte, i int, n int64) []byte {
			return s.appendObject(b, s.made, i, n+1, 0)
		}}, nil
	case "delete":
		s.deletable()
		return &remove{writing: some(http.MethodDelete, "")}, nil
	case "deletecollection":
		return o.removeMany(x, s), nil
	}
	return nil, fmt.Errorf("unknown verb %q", x.Verb)
}

type writing struct {
	call
	set  *Set
	draw stream
}

// begin prepares the Answer for a response. If updates must name the resourceVersion, the Answer keeps the new one.
func (w *writing) begin(a *Answer) {
	w.expect(a)
	if w.set.versions != nil {
		a.find = fieldVersion
	}
}

func (w *writing) pick(n int64) int { return w.draw.among(n, w.set.count) }

func (w *writing) done(r *request.Request, a *Answer, o load.Outcome) bool {
	if o.Success() {
		w.set.learn(int(r.Key), a.Version())
	}
	return false
}

type create struct{ writing }

func (c *create) next(n int64, r *request.Request, a *Answer) bool {
	c.expect(a)
	s := c.set
	namespace := 0
	if len(s.paths) > 1 {
		namespace = s.spread.pick(c.draw.unit(n))
	}
	r.Path = append(r.Path, s.paths[namespace]...)
	r.Body = s.appendNew(r.Body, n, namespace)
	return true
}

func (c *create) done(*request.Request, *Answer, load.Outcome) bool { return false }

type update struct {
	writing
	below string // path of a subresource
}

func (u *update) next(n int64, r *request.Request, a *Answer) bool {
	u.begin(a)
	s, i := u.set, u.pick(n)
	var version uint64
	if s.versions != nil {
		var free bool
		if i, free = s.reserve(i); !free {
			return false
		}
		version = s.versions[i].number.Load()
	}
	r.Key = int64(i)
	r.Path = append(s.AppendPath(r.Path, i), u.below...)
	r.Body = s.appendObject(r.Body, s.updated, i, n+1, version)
	return true
}

func (u *update) done(r *request.Request, a *Answer, o load.Outcome) bool {
	u.writing.done(r, a, o)
	if u.set.versions != nil {
		u.set.release(int(r.Key), o)
	}
	return false
}

// change is the action that patches an object, applies it with server-side apply, or creates a subresource of it.
type change struct {
	writing
	query string
	body  func(b []byte, i int, n int64) []byte // appends the body of arrival n for object i
}

func (c *change) next(n int64, r *request.Request, a *Answer) bool {
	c.begin(a)
	i := c.pick(n)
	r.Key = int64(i)
	r.Path = append(c.set.AppendPath(r.Path, i), c.query...)
	r.Body = c.body(r.Body, i, n)
	return true
}

// remove is the action that deletes or evicts the oldest object. Afterwards an unmeasured request recreates the object.
type remove struct {
	writing
	below string
	body  func(b []byte, i int, n int64) []byte // appends the body of an eviction; nil for deletes
}

func (d *remove) next(n int64, r *request.Request, a *Answer) bool {
	d.expect(a)
	select {
	case i := <-d.set.whole:
		r.Key = int64(i)
		r.Path = append(d.set.AppendPath(r.Path, i), d.below...)
		if d.body != nil {
			r.Body = d.body(r.Body, i, n)
		}
		return true
	default:
		return false
	}
}

func (d *remove) done(r *request.Request, _ *Answer, o load.Outcome) bool {
	i := int(r.Key)
	if o == http.StatusTooManyRequests { // nothing was deleted
		d.set.whole <- i
	} else {
		d.set.gone <- i
	}
	return false
}
