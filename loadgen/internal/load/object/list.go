package object

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// list is the action that lists a collection. Each request reads one namespace or all namespaces together.
type list struct {
	call
	prefix string // path of an API server behind a gateway, such as /k8s/clusters/c1
	draw   stream
	pages  bool
	exact  *exactVersion // resourceVersion for resourceVersionMatch=Exact; nil for other lists
	// first and open are paths with queries, by namespace. `first` is for first pages. `open` is for later pages and
	// exact lists, which append the continue token or the version.
	first, open []string
}

func (o *operation) list(ctx context.Context, x scenario.Operation, s *Set, own bool) (*list, error) {
	l := &list{
		call: o.call(http.MethodGet, x, ""), prefix: o.templates.Prefix(),
		draw: newStream(o.seed, o.load.Name, "namespace of "+x.Resource), pages: x.AllPages,
	}
	var parts []string
	if x.Limit > 0 {
		parts = append(parts, "limit="+strconv.Itoa(x.Limit))
	}
	if own {
		x.LabelSelector = load.LoadLabel + "=" + o.load.Name
	}
	if x.LabelSelector != "" {
		parts = append(parts, "labelSelector="+url.QueryEscape(x.LabelSelector))
	}
	if x.FieldSelector != "" {
		parts = append(parts, "fieldSelector="+url.QueryEscape(x.FieldSelector))
	}
	shared := "?"
	for _, p := range parts {
		shared += p + "&"
	}
	paths := []string{s.resource.collection("")}
	if x.Scope != "cluster" {
		paths = s.collections(own || s.count > 0 || o.creates(x.Resource))
	}
	for _, path := range paths {
		first := path + shared
		if x.ResourceVersion == "0" {
			first += "resourceVersion=0&"
		}
		l.first = append(l.first, strings.TrimRight(first, "?&"))
		l.open = append(l.open, path+shared)
	}
	if x.ResourceVersion == "exact" {
		l.exact = &exactVersion{asker: o.asker, name: x.Resource, path: paths[0], old: make(chan struct{}, 1)}
		return l, l.exact.renew(ctx)
	}
	return l, nil
}

func (o *operation) creates(resource string) bool {
	return slices.ContainsFunc(o.asked, func(x scenario.Operation) bool {
		return x.Resource == resource && x.Verb == "create" && x.Subresource == ""
	})
}

func (l *list) next(n int64, r *request.Request, a *Answer) bool {
	i := l.draw.among(n, len(l.first))
	r.Key = int64(i)
	l.expect(a)
	if l.pages {
		a.find = fieldContinue
	}
	if l.exact == nil {
		r.Path = append(r.Path, l.first[i]...)
		return true
	}
	r.Path = append(append(r.Path, l.open[i]...), "resourceVersion="...)
	r.Path = append(append(r.Path, *l.exact.version.Load()...), "&resourceVersionMatch=Exact"...)
	return true
}

// done requests the next page, if there is one. The query of a later page has no resourceVersion, because the continue
// token contains it.
func (l *list) done(r *request.Request, a *Answer, o load.Outcome) bool {
	if o == http.StatusGone && l.exact != nil {
		l.exact.outdated()
	}
	if !l.pages || !o.Success() {
		return false
	}
	token := a.Token()
	if len(token) == 0 {
		return false
	}
	r.Path = append(append(append(r.Path[:0], l.prefix...), l.open[r.Key]...), "continue="...)
	r.Path = appendEscaped(r.Path, token)
	return true
}

func (l *list) background(ctx context.Context) {
	if l.exact != nil {
		l.exact.keep(ctx)
	}
}

func appendEscaped(b, value []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range value {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '~':
			b = append(b, c)
		default:
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return b
}

// renewPause is the minimum time between two renewals of an exactVersion.
const renewPause = time.Second

// exactVersion is the resourceVersion for lists with resourceVersionMatch=Exact. The client reads it with a list at the
// start, and again after a 410.
type exactVersion struct {
	asker   *asker
	name    string
	path    string
	version atomic.Pointer[string]
	old     chan struct{}
}

func (e *exactVersion) renew(ctx context.Context) error {
	r, err := e.asker.ask(ctx, query{method: http.MethodGet, path: e.path + "?limit=1"})
	if err != nil {
		return err
	}
	if err := failed("list", e.name, r, nil); err != nil {
		return err
	}
	var d document
	if err := d.write(r.body); err != nil || len(d.version) == 0 {
		return fmt.Errorf("list %s: the response has no resourceVersion", e.name)
	}
	e.version.Store(new(url.QueryEscape(string(d.version))))
	return nil
}

// outdated requests a renewal of the version. It does not block.
func (e *exactVersion) outdated() {
	select {
	case e.old <- struct{}{}:
	default: // already requested
	}
}

func (e *exactVersion) keep(ctx context.Context) {
	for {
		select {
		case <-e.old:
		case <-ctx.Done():
			return
		}
		// If this fails, the next 410 requests another renewal.
		_ = e.renew(ctx)
		if !apiclient.Pause(ctx, renewPause) {
			return
		}
	}
}
