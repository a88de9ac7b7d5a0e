package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

const configMapsResource = "configmaps"

func newOperation(t Target, l scenario.Load, c *client) (requestOperation, error) {
	query := url.Values{}
	if l.ResourceVersion != "" {
		query.Set("resourceVersion", l.ResourceVersion)
	}
	if l.Resource != configMapsResource {
		r := reads{client: c, resource: l.Resource, namespace: t.Namespace, query: query}
		switch l.Verb {
		case "get":
			return &getAny{reads: r, seed: uint64(t.Seed)}, nil
		case "list":
			if l.Limit > 0 {
				query.Set("limit", strconv.Itoa(l.Limit))
			}
			return &listAny{reads: r}, nil
		}
		return nil, fmt.Errorf("%s works on configmaps only, not on %s", l.Verb, l.Resource)
	}
	objects, err := newConfigMaps(c, t, l.Name, l.Objects, int64(l.Size))
	if err != nil {
		return nil, err
	}
	some := onConfigMaps{configMaps: objects, seed: uint64(t.Seed)}
	switch l.Verb {
	case "get":
		for i := range objects.names {
			some.targets = append(some.targets, c.url(objects.all+"/"+objects.names[i], query))
		}
		return &getConfigMap{some}, nil
	case "list":
		query.Set("labelSelector", LoadLabel+"="+l.Name)
		if l.Limit > 0 {
			query.Set("limit", strconv.Itoa(l.Limit))
		}
		some.targets = []*url.URL{c.url(objects.all, query)}
		return &getConfigMap{some}, nil
	case "update":
		return &updateConfigMap{some}, nil
	case "patch":
		return &patchConfigMap{some}, nil
	case "create":
		some.targets = []*url.URL{c.url(objects.all, nil)}
		return &createConfigMap{some, fmt.Sprintf("%s-new-%d-", l.Name, t.Seed)}, nil
	case "delete":
		return newDeleteConfigMap(some), nil
	}
	return nil, fmt.Errorf("unknown verb %q; there are get, list, create, update, patch and delete", l.Verb)
}

// draw is the seed's choice for arrival n among so many (splitmix64): no state,
// so that arrivals that were not sent change nothing for those after.
func draw(seed uint64, n int64, among int) int {
	z := seed + uint64(n+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(among))
}

// plain is an operation that needs nothing but its request.
type plain struct{}

func (plain) read(_ int64, resp *http.Response) error         { return drain(resp) }
func (plain) done(context.Context, int64, Outcome, time.Time) {}
func (plain) background(context.Context)                      {}
func (plain) reserve(n int64, _ time.Time) (int64, bool)      { return n, true }

// onConfigMaps is a verb on the load's own ConfigMaps.
type onConfigMaps struct {
	plain
	*configMaps
	seed    uint64
	targets []*url.URL
}

// pick is the ConfigMap of arrival n.
func (o *onConfigMaps) pick(n int64) int { return draw(o.seed, n, len(o.names)) }

// getConfigMap reads: one of the objects, or their list.
type getConfigMap struct{ onConfigMaps }

func (o *getConfigMap) request(n int64) *http.Request {
	return o.client.request(http.MethodGet, o.targets[draw(o.seed, n, len(o.targets))], o.client.reading, nil)
}

type updateConfigMap struct{ onConfigMaps }

func (o *updateConfigMap) request(n int64) *http.Request {
	i := o.pick(n)
	return o.client.request(http.MethodPut, o.urls[i], o.client.writing[jsonType], o.object(o.names[i], n))
}

type patchConfigMap struct{ onConfigMaps }

func (o *patchConfigMap) request(n int64) *http.Request {
	return o.client.request(http.MethodPatch, o.urls[o.pick(n)], o.client.writing[mergePatchType], mergePatch("", o.body.turn(n)))
}

// mergePatch changes the payload, and the stamp if there is one. Neither needs
// escaping.
func mergePatch(stamp string, payload []byte) []byte {
	b := make([]byte, 0, len(payload)+len(stamp)+96)
	b = append(b, '{')
	if stamp != "" {
		b = append(append(append(b, `"metadata":{"annotations":{"`+StampAnnotation+`":"`...), stamp...), `"}},`...)
	}
	return append(append(append(b, `"data":{"payload":"`...), payload...), `"}}`...)
}

type createConfigMap struct {
	onConfigMaps
	prefix string
}

// prepare makes nothing: what this load creates is what is measured.
func (o *createConfigMap) prepare(context.Context) error { return nil }

func (o *createConfigMap) request(n int64) *http.Request {
	name := o.prefix + strconv.FormatInt(n, 10)
	return o.client.request(http.MethodPost, o.targets[0], o.client.writing[jsonType], o.object(name, n))
}

type deleteConfigMap struct {
	onConfigMaps
	whole chan int64 // objects that exist
}

func newDeleteConfigMap(some onConfigMaps) *deleteConfigMap {
	o := &deleteConfigMap{some, make(chan int64, len(some.names))}
	for i := range some.names {
		o.whole <- int64(i)
	}
	return o
}

func (o *deleteConfigMap) reserve(int64, time.Time) (int64, bool) {
	select {
	case i := <-o.whole:
		return i, true
	default:
		return 0, false
	}
}

func (o *deleteConfigMap) request(i int64) *http.Request {
	return o.client.request(http.MethodDelete, o.urls[i], o.client.reading, nil)
}

// done makes the object again. If that fails, so will the next delete, with a
// 404 that is counted.
func (o *deleteConfigMap) done(ctx context.Context, i int64, _ Outcome, _ time.Time) {
	_, _, _ = o.client.askOnce(ctx, http.MethodPost, o.client.url(o.all, nil), jsonType, o.object(o.names[i], i))
	o.whole <- i
}

// reads is a read of a resource that is not the load's own.
type reads struct {
	plain
	client              *client
	resource, namespace string
	query               url.Values
	path                string // of the collection, once prepared
}

func (r *reads) prepare(ctx context.Context) (err error) {
	r.path, err = resolve(ctx, r.client, r.resource, r.namespace)
	return err
}

type listAny struct {
	reads
	target *url.URL
}

func (r *listAny) prepare(ctx context.Context) error {
	err := r.reads.prepare(ctx)
	r.target = r.client.url(r.path, r.query)
	return err
}

func (r *listAny) request(int64) *http.Request {
	return r.client.request(http.MethodGet, r.target, r.client.reading, nil)
}

type getAny struct {
	reads
	seed  uint64
	known atomic.Pointer[[]*url.URL]
}

// Names are renewed at these intervals, from a list of at most so many.
const (
	renewNames   = 10 * time.Second
	renewNoNames = time.Second
	mostNames    = 500
	noSuchObject = "stormglass-no-such-object"
)

func (r *getAny) prepare(ctx context.Context) error {
	if err := r.reads.prepare(ctx); err != nil {
		return err
	}
	r.known.Store(&[]*url.URL{r.client.url(r.path+"/"+noSuchObject, r.query)})
	return r.renew(ctx)
}

// renew lists the resource, from the API server's cache, and keeps the names
// of before if there are none now.
func (r *getAny) renew(ctx context.Context) error {
	u := r.client.url(r.path, url.Values{"resourceVersion": {"0"}, "limit": {strconv.Itoa(mostNames)}})
	status, answer, err := r.client.ask(ctx, http.MethodGet, u, "", nil)
	if err != nil {
		return err
	}
	if !Outcome(status).Success() {
		return statusError("list", r.resource, status, answer)
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("list %s: %w", r.resource, err)
	}
	var urls []*url.URL
	for _, item := range list.Items {
		path := r.path
		if r.namespace == "" && item.Namespace != "" {
			path = namespaced(path, item.Namespace)
		}
		if urls = append(urls, r.client.url(path+"/"+item.Name, r.query)); len(urls) == mostNames {
			break // from its cache the API server ignores the limit
		}
	}
	if len(urls) > 0 {
		r.known.Store(&urls)
	}
	return nil
}

func (r *getAny) background(ctx context.Context) {
	for {
		wait := renewNames
		if len(*r.known.Load()) == 1 {
			wait = renewNoNames
		}
		if !pause(ctx, wait) {
			return
		}
		// A failure shows in what is measured; the names of before serve on.
		_ = r.renew(ctx)
	}
}

func (r *getAny) request(n int64) *http.Request {
	known := *r.known.Load()
	return r.client.request(http.MethodGet, known[draw(r.seed, n, len(known))], r.client.reading, nil)
}
