package object

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// accept returns the Accept header of an operation. It names only one encoding, so the server cannot use another one.
func accept(o scenario.Operation) string {
	media := jsonType
	switch o.Encoding {
	case "protobuf":
		media = protobuf.ContentType
	case "cbor":
		media = cborType
	}
	as := ""
	switch {
	case writes(o.Verb):
	case o.Form == "table":
		as = "Table"
	case o.Form == "metadata" && o.Verb == "list":
		as = "PartialObjectMetadataList"
	case o.Form == "metadata":
		as = "PartialObjectMetadata"
	}
	if as != "" {
		media += ";as=" + as + ";v=v1;g=meta.k8s.io"
	}
	return media
}

// action returns the action of one operation. Call it after the Set has found its resource and created its objects.
func (o *operation) action(ctx context.Context, x scenario.Operation, s *Set) (action, error) {
	picks := newStream(o.seed, o.load.Name, "object of "+x.Resource)
	own := s.count > 0 && o.load.OwnObjects(x)
	switch {
	case x.Verb == "list":
		return o.list(ctx, x, s, own)
	case x.Verb == "get" && own:
		return &getOwn{call: o.call(http.MethodGet, x, ""), set: s, draw: picks, query: below(x) + versionQuery(x)}, nil
	case x.Verb == "get":
		g := &getAny{call: o.call(http.MethodGet, x, ""), set: s, draw: picks, query: below(x) + versionQuery(x)}
		return g, g.prepare(ctx)
	}
	return o.write(ctx, x, s, picks)
}

// below returns the path of the operation's subresource, relative to the object.
func below(x scenario.Operation) string {
	if x.Subresource == "" {
		return ""
	}
	return "/" + x.Subresource
}

func versionQuery(x scenario.Operation) string {
	if x.ResourceVersion == "" {
		return ""
	}
	return "?resourceVersion=" + x.ResourceVersion
}

type getOwn struct {
	call
	set   *Set
	draw  stream
	query string
}

func (g *getOwn) next(n int64, r *request.Request, a *Answer) bool {
	g.expect(a)
	r.Path = append(g.set.AppendPath(r.Path, g.draw.among(n, g.set.count)), g.query...)
	return true
}

// Settings for reading the names of existing objects. renewNames is the time between two lists, or renewNoNames while
// the list is empty. maxNames is the maximum number of names.
const (
	renewNames   = 10 * time.Second
	renewNoNames = time.Second
	maxNames     = 500
	noSuchObject = "stormglass-no-such-object"
)

// getAny is the action that reads objects that the load did not create: those in the run's namespace or, if the run has
// none, in all namespaces.
type getAny struct {
	call
	set   *Set
	draw  stream
	query string
	known atomic.Pointer[[]string] // paths of the objects with the query; never empty
}

func (g *getAny) prepare(ctx context.Context) error {
	g.known.Store(&[]string{g.set.resource.collection(g.set.namespace) + "/" + noSuchObject + g.query})
	return g.renew(ctx)
}

// renew reads the names on the first page of a list. If the page is empty, the old names stay in use.
func (g *getAny) renew(ctx context.Context) error {
	list, err := readMetadata(ctx, g.set.asker.ask, g.set.resource.collection(g.set.namespace)+"?limit="+strconv.Itoa(maxNames), g.set.name)
	if err != nil {
		return err
	}
	var paths []string
	for _, item := range list.Items[:min(len(list.Items), maxNames)] {
		paths = append(paths, g.set.resource.collection(item.Namespace)+"/"+url.PathEscape(item.Name)+g.query)
	}
	if len(paths) > 0 {
		g.known.Store(&paths)
	}
	return nil
}

func (g *getAny) background(ctx context.Context) {
	for {
		wait := renewNames
		if known := *g.known.Load(); len(known) == 1 && strings.Contains(known[0], noSuchObject) {
			wait = renewNoNames
		}
		if !apiclient.Pause(ctx, wait) {
			return
		}
		// If this fails, the old names stay in use, and the measured requests show whether the server works.
		_ = g.renew(ctx)
	}
}

func (g *getAny) next(n int64, r *request.Request, a *Answer) bool {
	g.expect(a)
	known := *g.known.Load()
	r.Path = append(r.Path, known[g.draw.among(n, len(known))]...)
	return true
}
