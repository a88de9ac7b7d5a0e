package replay

import (
	"context"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/internal/atomicmax"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// operation is the request.Operation that sends the requests of a plan.
type operation struct {
	*plan
	ledger    *ledger
	templates *request.Templates
	headers   []*request.Template // request templates by actor, copy and class; nil if no request uses the template
	prepare   func(context.Context) error

	versions []atomic.Uint64      // newest version seen, by object and copy, for updates that must contain a version
	newest   atomic.Uint64        // newest version in any response, at which watches begin
	pages    map[pageKey]*page    // continue tokens of the lists whose next pages are in the recording
	seconds  bins                 // number of requests sent in each second
	now      func() time.Duration // time since the load's start
	await    func(ctx context.Context, at time.Duration) bool
	unset    atomic.Int64 // number of requests that had an exact version in the recording and were sent without one
	restarts atomic.Int64 // number of requests for a next page that read the first page, because no token was known
}

// pageKey identifies a list that is read in pages. Requests with the same key are pages of the same list.
type pageKey struct {
	chain, actor, namespace, object int32
	copy                            int16
}

// page stores the continue token for the next page of a list.
type page struct{ token atomic.Pointer[string] }

type state struct {
	answer  object.Answer
	arrival Arrival
	page    *page
}

var _ request.Operation = (*operation)(nil)

// Kinds returns one kind for each pair of verb and resource in the recording, except watches.
func (o *operation) Kinds() []request.Kind { return o.kinds[:o.requests] }

// Prepare discovers the cluster's resources and creates the objects.
func (o *operation) Prepare(ctx context.Context) error { return o.prepare(ctx) }

// Background renews the bearer token until ctx ends.
func (o *operation) Background(ctx context.Context) { o.templates.Renew(ctx) }

// KindOf returns the index in Kinds of the kind of arrival n.
func (o *operation) KindOf(n int64) int {
	return o.actions[o.recording.Entries[o.sent[n].Entry].Shape].kind
}

// Next fills in the request of arrival n.
func (o *operation) Next(n int64, r *request.Request) bool {
	st, ok := r.State.(*state)
	if !ok {
		st = &state{}
		r.State = st
	}
	a := o.sent[n]
	e := &o.recording.Entries[a.Entry]
	act := &o.actions[e.Shape]
	st.arrival, st.page = a, o.pageOf(act, e, a)
	st.answer.Begin(o.classes[act.class].gzip)
	var queried bool
	r.Path, queried = o.appendPath(append(r.Path[:0], o.templates.Prefix()...), a, n)
	r.Path = o.appendVersion(r.Path, queried, act, st.page)
	var version uint64
	if act.versioned && e.Object != recording.None {
		version = o.versions[o.object(e, a)].Load()
	}
	r.Body = o.appendBody(r.Body[:0], a, n, version)
	r.Template = o.header(e, a, act).Load()
	o.seconds.add(o.now())
	o.ledger.sent(act.kind, e, a)
	return true
}

// appendVersion appends the query parameter `resourceVersion` or, for the next page of a list, `continue`, if the
// request needs it. `queried` means that b already contains a query.
func (o *operation) appendVersion(b []byte, queried bool, act *action, p *page) []byte {
	s := &act.shape
	if s.Paged {
		if token := p.take(); token != "" {
			return append(appendParameter(b, &queried, "continue="), url.QueryEscape(token)...)
		}
		o.restarts.Add(1)
	}
	switch {
	case s.ResourceVersion == "0" && !s.Writes():
		b = appendParameter(b, &queried, "resourceVersion=0")
	case s.ResourceVersion == recording.Exact && s.Verb == "watch":
		if newest := o.newest.Load(); newest > 0 && !s.InitialEvents {
			b = strconv.AppendUint(appendParameter(b, &queried, "resourceVersion="), newest, 10)
		}
	case s.ResourceVersion == recording.Exact:
		o.unset.Add(1)
	}
	return b
}

// take returns the token. It returns "" if no token is stored or p is nil.
func (p *page) take() string {
	if p == nil {
		return ""
	}
	if token := p.token.Load(); token != nil {
		return *token
	}
	return ""
}

// pageOf returns the page that stores the continue token of a list. It returns nil if the recording contains no request
// for a further page of the list.
func (o *operation) pageOf(act *action, e *recording.Entry, a Arrival) *page {
	if act.shape.Verb != "list" || act.shape.Limit == 0 && !act.shape.Paged {
		return nil
	}
	return o.pages[pageKey{act.chain, e.Actor, e.Namespace, e.Object, a.Copy}]
}

// keepPages creates a page for each list whose next pages are in the recording.
func (o *operation) keepPages() {
	o.pages = map[pageKey]*page{}
	for _, a := range o.sent {
		e := &o.recording.Entries[a.Entry]
		if act := &o.actions[e.Shape]; act.shape.Paged {
			key := pageKey{act.chain, e.Actor, e.Namespace, e.Object, a.Copy}
			if o.pages[key] == nil {
				o.pages[key] = &page{}
			}
		}
	}
}

// object returns the index in o.versions of an entry's object.
func (o *operation) object(e *recording.Entry, a Arrival) int {
	return int(e.Object)*o.options.Copies + int(a.Copy)
}

func (o *operation) header(e *recording.Entry, a Arrival, act *action) *request.Template {
	return o.headers[o.headerIndex(e, a, act)]
}

func (o *operation) headerIndex(e *recording.Entry, a Arrival, act *action) int {
	return (int(e.Actor)*o.options.Copies+int(a.Copy))*len(o.classes) + act.class
}

// Data reads the next bytes of a 2xx response.
func (o *operation) Data(r *request.Request, status int, p []byte) error {
	if !load.Outcome(status).Success() {
		return nil
	}
	return r.State.(*state).answer.Data(p)
}

// Done stores the resourceVersion and the continue token of the response for later requests.
func (o *operation) Done(r *request.Request, outcome load.Outcome, _ time.Time) bool {
	st := r.State.(*state)
	a := st.arrival
	e := &o.recording.Entries[a.Entry]
	act := &o.actions[e.Shape]
	o.ledger.ended(act.kind, e, a, outcome)
	if !outcome.Success() {
		return false
	}
	version := st.answer.Version()
	atomicmax.Raise(&o.newest, version)
	if act.versioned && e.Object != recording.None && !act.shape.Collective() {
		atomicmax.Raise(&o.versions[o.object(e, a)], version)
	}
	if p := st.page; p != nil {
		p.token.Store(new(string(st.answer.Token())))
	}
	return false
}
