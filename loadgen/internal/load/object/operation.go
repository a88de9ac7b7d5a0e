package object

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

type operation struct {
	load      scenario.Load
	asker     *asker
	templates *request.Templates
	gzip      bool
	seed      int64
	*mix

	sets    map[string]*Set // the Sets of objects, by resource
	order   []*Set
	actions []action // the actions, by operation; set by Prepare
}

// action creates the requests of one operation of a mix, such as "list pods".
type action interface {
	// next fills in the path and the body of the request for arrival n, and prepares the Answer for the response. It
	// returns false if no object is free.
	next(n int64, r *request.Request, a *Answer) bool
	// The engine calls `done` at the end of a request. If `done` returns true, the engine sends r again with the
	// contents that `done` has set.
	done(r *request.Request, a *Answer, o load.Outcome) bool
	// background does work between requests, such as recreating deleted objects, until ctx ends.
	background(ctx context.Context)
	// template returns the request template for a tenant.
	template(tenant int) *request.Template
}

// NewOperation returns the operation of a load of kind "requests", which may be a mix of operations. It sends
// nothing.
func NewOperation(t load.Target, l scenario.Load) (request.Operation, error) {
	o, err := newOperation(t, l)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Name, err)
	}
	return o, nil
}

func newOperation(t load.Target, l scenario.Load) (*operation, error) {
	a, err := newAsker(t.Config)
	if err != nil {
		return nil, err
	}
	templates, err := request.NewTemplates(t)
	if err != nil {
		return nil, err
	}
	o := &operation{
		load: l, asker: a, templates: templates, gzip: !t.Config.DisableCompression, seed: t.Seed, mix: newMix(t.Seed, l), sets: map[string]*Set{},
	}
	for _, x := range o.asked {
		if err := o.add(t, x); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// add adds one operation to the mix. If the mix has no Set for the operation's resource yet, add creates one.
func (o *operation) add(t load.Target, x scenario.Operation) error {
	if !slices.Contains(scenario.Verbs, x.Verb) {
		return fmt.Errorf("unknown verb %q; there are %s", x.Verb, strings.Join(scenario.Verbs, ", "))
	}
	if builtin.IsDocument(x.Resource) {
		return nil
	}
	s := o.sets[x.Resource]
	if s == nil {
		s = newSet(o.asker, t, o.load, x.Resource)
		o.sets[x.Resource] = s
		o.order = append(o.order, s)
	}
	if _, ok := builtIn(x.Resource); !ok && o.load.Object == nil && writes(x.Verb) {
		return fmt.Errorf("cannot %s %s: there is no manifest for it (give the load an object)", x.Verb, x.Resource)
	}
	switch {
	case x.Verb == "create" && s.namespace == "":
		return errors.New("no namespace for the load's objects")
	case o.load.OwnObjects(x):
		if err := s.own(); err != nil {
			return err
		}
	}
	s.updates = s.updates || x.Verb == "update"
	s.creates = s.creates || x.Verb == "create" && x.Subresource == ""
	return nil
}

func writes(verb string) bool { return verb != "get" && verb != "list" }

// Prepare finds the resources and creates the objects. If it fails, it can be called again.
func (o *operation) Prepare(ctx context.Context) error {
	defer o.asker.close()
	o.actions = nil
	for _, s := range o.order {
		if err := s.find(ctx); err != nil {
			return err
		}
		if s.manifest == nil {
			s.count = 0 // the load's manifest is for another resource of the mix
		}
		if err := s.makeAll(ctx); err != nil {
			return err
		}
	}
	for _, x := range o.asked {
		if builtin.IsDocument(x.Resource) {
			act, err := o.document(ctx, x)
			if err != nil {
				return err
			}
			o.actions = append(o.actions, act)
			continue
		}
		s := o.sets[x.Resource]
		if err := s.resource.can(x.Verb, x.Subresource); err != nil {
			return err
		}
		act, err := o.action(ctx, x, s)
		if err != nil {
			return err
		}
		o.actions = append(o.actions, act)
	}
	return nil
}

// Background renews the bearer token, the names of existing objects and the known versions, and recreates deleted
// objects, until ctx ends.
func (o *operation) Background(ctx context.Context) {
	defer o.asker.close()
	var all sync.WaitGroup
	all.Go(func() { o.templates.Renew(ctx) })
	for _, s := range o.order {
		all.Go(func() { s.keep(ctx) })
	}
	for _, act := range o.actions {
		all.Go(func() { act.background(ctx) })
	}
	all.Wait()
}

// Next fills in the request of arrival n.
func (o *operation) Next(n int64, r *request.Request) bool {
	which, tenant := o.draw(n)
	act := o.actions[which]
	a, ok := r.State.(*Answer)
	if !ok {
		a = &Answer{}
		r.State = a
	}
	a.Begin(false)
	a.action, a.tenant = act, tenant
	r.Path = append(r.Path[:0], o.templates.Prefix()...)
	r.Body = r.Body[:0]
	if !act.next(n, r, a) {
		return false
	}
	r.Template = act.template(tenant).Load()
	return true
}

// Data checks the next bytes of a 2xx response. An empty p marks the end of the response.
func (o *operation) Data(r *request.Request, status int, p []byte) error {
	if !load.Outcome(status).Success() {
		return nil
	}
	return r.State.(*Answer).Data(p)
}

// Done passes the end of a request to the operation's action. It returns true to request the next page of a list.
func (o *operation) Done(r *request.Request, outcome load.Outcome, _ time.Time) bool {
	a := r.State.(*Answer)
	if !a.action.done(r, a, outcome) {
		return false
	}
	r.Template = a.action.template(a.tenant).Load()
	a.Begin(a.gzip)
	return true
}

// call contains the common fields of all actions: a request template for each tenant, and the encoding of responses.
// The methods done and background of call do nothing.
type call struct {
	templates []*request.Template
	protobuf  bool
	cbor      bool
	gzip      bool
}

func (c *call) template(tenant int) *request.Template { return c.templates[tenant] }

func (c *call) done(*request.Request, *Answer, load.Outcome) bool { return false }

func (c *call) background(context.Context) {}

// expect prepares the Answer for a response in the encoding that the request accepts.
func (c *call) expect(a *Answer) {
	a.protobuf, a.json.binary, a.gzip, a.find = c.protobuf, c.cbor, c.gzip, noField
}

func (o *operation) call(method string, x scenario.Operation, contentType string) call {
	return o.callAs(method, x, accept(x), contentType)
}

// callAs returns a call whose requests accept the given media type.
func (o *operation) callAs(method string, x scenario.Operation, media, contentType string) call {
	c := call{protobuf: x.Encoding == "protobuf", cbor: x.Encoding == "cbor"}
	// The API server does not compress responses to writes. A load that reads all pages of a list cannot accept
	// compressed responses, because it must read the continue tokens.
	c.gzip = o.gzip && method == http.MethodGet && !x.AllPages
	for _, t := range o.tenants {
		extra := http.Header{}
		if c.gzip {
			extra.Set("Accept-Encoding", "gzip") // as in client-go
		}
		if t.Name != "" {
			extra.Set("Impersonate-User", scenario.TenantUser(t.Name))
			extra["Impersonate-Group"] = append([]string{scenario.TenantsGroup}, t.Groups...)
		}
		c.templates = append(c.templates, o.templates.New(method, media, contentType, extra))
	}
	return c
}
