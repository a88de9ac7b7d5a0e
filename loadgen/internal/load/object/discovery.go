package object

import (
	"context"
	"net/http"

	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// aggregatedType is the media type of a discovery document for /api or /apis that contains all groups. client-go
// requests this type.
const aggregatedType = jsonType + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// getDocument reads a complete discovery or OpenAPI document, as a client with an empty cache does.
type getDocument struct {
	call
	path string
}

func (o *operation) document(ctx context.Context, x scenario.Operation) (*getDocument, error) {
	media := jsonType
	if x.Resource == "/api" || x.Resource == "/apis" {
		media = aggregatedType
	}
	d := &getDocument{call: o.callAs(http.MethodGet, x, media, ""), path: x.Resource}
	r, err := o.asker.ask(ctx, query{method: http.MethodGet, path: x.Resource, accept: media})
	return d, failed("get", x.Resource, r, err, http.StatusNotFound) // the measured requests count a 404
}

func (d *getDocument) next(_ int64, r *request.Request, a *Answer) bool {
	d.expect(a)
	r.Path = append(r.Path, d.path...)
	return true
}
