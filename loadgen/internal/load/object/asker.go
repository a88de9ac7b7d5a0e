package object

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

const (
	jsonType       = "application/json"
	cborType       = "application/cbor"
	applyPatchType = "application/apply-patch+yaml"
	// applyQuery makes a server-side apply force ownership of fields that other field managers own.
	applyQuery = "?fieldManager=stormglass&force=true"
)

// Rate limit for the unmeasured requests of a load (see asker).
const (
	setupRate  = 500 // requests per second
	setupBurst = 50
)

// Limits for each unmeasured request of a load. An asker retries such a request while the server is overloaded or
// unreachable.
const (
	setupTimeout  = time.Minute
	setupAttempts = 8
	setupBackoff  = 250 * time.Millisecond
	longestWait   = 10 * time.Second // upper limit for the wait that Retry-After requests
	largestAnswer = 256 << 20
)

// asker sends a load's unmeasured requests, for example to create the load's objects. It uses client-go's
// authentication, its own connections, and net/http. net/http may send a request twice; here this does no harm.
type asker struct {
	transport *http.Transport
	client    http.RoundTripper
	base      url.URL
	agent     string
	limiter   flowcontrol.RateLimiter
}

func newAsker(config *rest.Config) (*asker, error) {
	if config == nil {
		return nil, fmt.Errorf("no client configuration for the API server")
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("API server %q: %w", config.Host, err)
	}
	dial, err := apiclient.Dialer(config)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	a := &asker{
		base: *base, agent: cmp.Or(config.UserAgent, apiclient.DefaultAgent),
		transport: &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true, MaxIdleConnsPerHost: load.AtOnce, DialContext: dial},
		limiter:   flowcontrol.NewTokenBucketRateLimiter(setupRate, setupBurst),
	}
	config.UserAgent, config.Transport = "", nil
	if a.transport.TLSClientConfig, err = rest.TLSConfigFor(config); err != nil {
		return nil, fmt.Errorf("TLS to %s: %w", base.Host, err)
	}
	if a.client, err = rest.HTTPWrappersForConfig(config, a.transport); err != nil {
		return nil, fmt.Errorf("authentication to %s: %w", base.Host, err)
	}
	return a, nil
}

// close closes the connections that are not in use. The next request opens a new connection.
func (a *asker) close() { a.transport.CloseIdleConnections() }

type query struct {
	method string
	path   string // path without the prefix of a gateway; may include a query
	accept string // Accept header; "" means JSON
	typ    string // media type of body
	body   []byte
}

type reply struct {
	status int
	body   []byte
	wait   time.Duration // Retry-After of the server
}

func (r reply) success() bool { return load.Outcome(r.status).Success() }

// ask sends a query, up to setupAttempts times, until the server answers with a status other than 429 and 5xx. Its
// error names the method and the path.
func (a *asker) ask(ctx context.Context, q query) (reply, error) {
	wait := setupBackoff
	for attempt := 1; ; attempt++ {
		if err := a.limiter.Wait(ctx); err != nil {
			return reply{}, fmt.Errorf("%s %s: %w", q.method, q.path, err)
		}
		r, err := a.once(ctx, q)
		again := err != nil || r.status == http.StatusTooManyRequests || r.status >= 500
		if !again {
			return r, nil
		}
		if attempt == setupAttempts || ctx.Err() != nil || !apiclient.Pause(ctx, max(wait, min(r.wait, longestWait))) {
			if err != nil {
				err = fmt.Errorf("%s %s: %w", q.method, q.path, err)
			}
			return r, err
		}
		wait *= 2
	}
}

// once sends a query without retries.
func (a *asker) once(ctx context.Context, q query) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	to := a.base.Scheme + "://" + a.base.Host + strings.TrimSuffix(a.base.Path, "/") + q.path
	req, err := http.NewRequestWithContext(ctx, q.method, to, bytes.NewReader(q.body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("User-Agent", a.agent)
	req.Header.Set("Accept", jsonType)
	if q.accept != "" {
		req.Header.Set("Accept", q.accept)
	}
	if q.typ != "" {
		req.Header.Set("Content-Type", q.typ)
	}
	resp, err := a.client.RoundTrip(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	r.wait = time.Duration(seconds) * time.Second
	if r.body, err = io.ReadAll(io.LimitReader(resp.Body, largestAnswer)); err != nil {
		return reply{}, err
	}
	return r, nil
}

// failed returns a one-line error if a request failed with err or, if err is nil, if the server refused the request.
// For some statuses the error contains a hint. failed returns nil if the request succeeded or its status is allowed.
func failed(verb, object string, r reply, err error, allowed ...int) error {
	if err == nil {
		if r.success() || slices.Contains(allowed, r.status) {
			return nil
		}
		err = load.Refusal(verb, r.status, r.body)
	}
	return fmt.Errorf("%s %s: %w", verb, object, err)
}

// metadataList is the media type of lists that contain only the metadata of objects.
const metadataList = jsonType + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

// readMetadata sends a query for a list with the function ask, and returns the metadata of the objects on the page.
// name is the name of the resource in errors.
func readMetadata(ctx context.Context, ask func(context.Context, query) (reply, error), path, name string) (list metav1.PartialObjectMetadataList, err error) {
	r, err := ask(ctx, query{method: http.MethodGet, path: path, accept: metadataList})
	if err != nil {
		return list, err
	}
	if err := failed("list", name, r, nil); err != nil {
		return list, err
	}
	if err := json.Unmarshal(r.body, &list); err != nil {
		return list, fmt.Errorf("list %s: %w", name, err)
	}
	return list, nil
}
