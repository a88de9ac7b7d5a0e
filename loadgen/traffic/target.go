package traffic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// LoadLabel is on every object a load makes; its value is the load's name.
const LoadLabel = "stormglass.dev/load"

// Target is what loads are sent to, as an authenticated client. Loads of one
// target that run on one namespace need names of their own.
type Target struct {
	// Config is how to reach and authenticate to the API server. Its rate
	// limit is not used: a limiter in the client would hide what is offered.
	// Its Transport, if set, is used in place of connections of the load's own.
	Config *rest.Config
	// Namespace exists and holds the loads' objects. Loads on other
	// namespaced resources read this namespace, or all of them if it is empty.
	Namespace string
	// Labels are put on every object that is made, beside LoadLabel.
	Labels map[string]string
	// Seed of everything random.
	Seed int64
	// Registerer takes the loads' metrics. Nil: none are exposed.
	Registerer prometheus.Registerer
}

// client sends the requests of one load.
type client struct {
	http.RoundTripper
	pool *pool // nil with a RoundTripper of the user's
	base url.URL
	// reading and writing are the headers of all measured requests. Shared:
	// a RoundTripper does not change a request's headers.
	reading http.Header
	// watching never asks for compression: events would wait for each other.
	watching http.Header
	writing  map[string]http.Header // by content type
}

const (
	jsonType       = "application/json"
	mergePatchType = "application/merge-patch+json"
)

func (t Target) client(use usage) (*client, error) {
	if t.Config == nil {
		return nil, fmt.Errorf("no configuration of the API server's client")
	}
	base, _, err := rest.DefaultServerUrlFor(t.Config)
	if err != nil {
		return nil, fmt.Errorf("API server %q: %w", t.Config.Host, err)
	}
	agent := t.Config.UserAgent
	if agent == "" {
		agent = "stormglass-loadgen"
	}
	c := &client{base: *base}
	c.reading = http.Header{"Accept": {jsonType}, "User-Agent": {agent}}
	c.watching = c.reading.Clone()
	if !t.Config.DisableCompression {
		// As client-go asks: the API server compresses answers over 128 KiB.
		// They are not inflated: nothing in them is read.
		c.reading.Set("Accept-Encoding", "gzip")
	}
	c.writing = map[string]http.Header{}
	for _, content := range []string{jsonType, mergePatchType} {
		c.writing[content] = http.Header{"Accept": {jsonType}, "User-Agent": {agent}, "Content-Type": {content}}
	}
	config := rest.CopyConfig(t.Config)
	config.UserAgent = "" // set above; a wrapper would copy every request for it
	var transport http.RoundTripper = config.Transport
	if transport == nil {
		if c.pool, err = newPool(config, base, use); err != nil {
			return nil, err
		}
		transport = c.pool
	}
	config.Transport = nil
	if c.RoundTripper, err = rest.HTTPWrappersForConfig(config, transport); err != nil {
		return nil, fmt.Errorf("authentication to %s: %w", base.Host, err)
	}
	return c, nil
}

func (c *client) open(ctx context.Context) error {
	if c.pool == nil {
		return nil
	}
	return c.pool.open(ctx)
}

func (c *client) close() {
	if c.pool != nil {
		c.pool.close()
	}
}

// url is a path of the API server with a query.
func (c *client) url(path string, query url.Values) *url.URL {
	u := c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	u.RawQuery = query.Encode()
	return &u
}

// request is one of the measured requests. No GetBody: nothing may repeat it.
func (c *client) request(method string, u *url.URL, header http.Header, body []byte) *http.Request {
	r := &http.Request{
		Method: method, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if body != nil {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return r
}

// Unmeasured requests, those of preparations, are tried again when the server
// is overloaded or gone for a moment.
const (
	setupTimeout  = 60 * time.Second
	setupAttempts = 8
	setupBackoff  = 250 * time.Millisecond
	largestAnswer = 256 << 20
)

// ask sends an unmeasured request and returns the status and body of the
// answer. An error names verb and path.
func (c *client) ask(ctx context.Context, method string, u *url.URL, content string, body []byte) (int, []byte, error) {
	wait := setupBackoff
	for attempt := 1; ; attempt++ {
		status, answer, err := c.askOnce(ctx, method, u, content, body)
		again := err != nil || status == http.StatusTooManyRequests || status >= 500
		if !again {
			return status, answer, nil
		}
		if attempt == setupAttempts || ctx.Err() != nil {
			if err != nil {
				return 0, nil, fmt.Errorf("%s %s: %w", method, u.Path, err)
			}
			return status, answer, nil
		}
		if !pause(ctx, wait) {
			return 0, nil, fmt.Errorf("%s %s: %w", method, u.Path, context.Cause(ctx))
		}
		wait *= 2
	}
}

func (c *client) askOnce(ctx context.Context, method string, u *url.URL, content string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	header := c.writing[content]
	if body == nil {
		header = c.watching // uncompressed
	}
	resp, err := c.RoundTrip(c.request(method, u, header, body).WithContext(ctx))
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, largestAnswer))
	return resp.StatusCode, answer, err
}

// statusError says in a line what an answer that is no success means, with a
// hint where there is one.
func statusError(verb, object string, status int, answer []byte) error {
	var s metav1.Status
	message := http.StatusText(status)
	if json.Unmarshal(answer, &s) == nil && s.Message != "" {
		message = s.Message
	}
	hint := map[int]string{
		http.StatusUnauthorized:    "the credentials are not valid for this API server",
		http.StatusForbidden:       "the user needs the RBAC permission to " + verb + " this; check with `kubectl auth can-i`",
		http.StatusNotFound:        "does the namespace exist?",
		http.StatusTooManyRequests: "priority and fairness rejects it; lower the rate or wait",
	}[status]
	if hint != "" {
		hint = " (" + hint + ")"
	}
	return fmt.Errorf("%s %s: %d: %s%s", verb, object, status, message, hint)
}

// pause waits for d; false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
