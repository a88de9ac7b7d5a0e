package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// link is a node's connection to the API server, or one of the shared connections. It counts the requests.
type link struct {
	fleet *Fleet
	// identity returns the client configuration. The link calls it at the first dial, after an error, and to renew the
	// client certificate.
	identity func(context.Context) (*rest.Config, error)
	roots    *apiclient.Roots
	ledger   *ledger
	poller   *h2conn.Poller // wakes the readers of connections; set before the first connection

	apiclient.Connection

	userAgent string

	access   atomic.Pointer[apiclient.Endpoint] // newest address and credentials; set before the first connection
	dialled  atomic.Pointer[apiclient.Endpoint] // address and credentials of the newest connection
	rotation rotation
}

// get returns a connection with a free stream. If urgent is false, more than urgentStreams streams must be free,
// because urgentStreams streams are reserved for urgent calls.
func (l *link) get(ctx context.Context, urgent bool) (*h2conn.Conn, error) {
	if urgent {
		return l.free(ctx, 1)
	}
	return l.free(ctx, urgentStreams+1)
}

// watch opens a watch on a connection that keeps enough free streams for calls. If a node has too many watches for one
// connection, because its pods use many ConfigMaps and Secrets, watch opens another connection, as a kubelet's client
// does.
func (l *link) watch(ctx context.Context, path string, h h2conn.Handler) (*h2conn.Stream, error) {
	const least = 2*urgentStreams + 1
	for last := false; ; last = true {
		conn, err := l.free(ctx, least)
		if err != nil {
			return nil, err
		}
		r, err := l.request(call{path: path, urgent: true})
		if err != nil {
			return nil, err
		}
		r.Accept = protobuf.WatchType
		stream, err := conn.OpenFree(r, h, least)
		switch {
		case !errors.Is(err, h2conn.ErrBusy): // ErrBusy: other watches have taken the free streams meanwhile
			return stream, err
		case last: // the server allows too few streams to keep some free
			return conn.Open(r, h)
		}
	}
}

// urgentStreams is the number of streams per connection that are reserved for urgent calls.
const urgentStreams = 16

func (l *link) dial(ctx context.Context) (*h2conn.Conn, error) {
	if l.access.Load() == nil {
		config, err := l.identity(ctx)
		if err == nil {
			err = l.adopt(config)
		}
		if err != nil {
			return nil, err
		}
	}
	to := l.access.Load()
	l.dialled.Store(to)
	conn, err := to.Connect(ctx, h2conn.Options{Urgent: urgentStreams, Poller: l.poller})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", to.Addr, err)
	}
	return conn, nil
}

// call is one request. verb and resource have the values of the labels verb and resource of the API server's metrics.
type call struct {
	verb, resource string // such as "patch" and "pods/status"
	path           string
	body           []byte // request body: a strategic merge patch, or an object in protobuf
	urgent         bool
	blind          bool // whether the caller ignores the response's content
}

// do sends a call, waits for the response and counts the call. If the server refused the call, the error wraps an
// *apierrors.StatusError.
func (l *link) do(ctx context.Context, c call) ([]byte, error) {
	answer, err := l.roundTrip(ctx, c)
	if err != nil {
		return l.settle(ctx, c, h2conn.Header{}, nil, err)
	}
	return l.settle(ctx, c, answer.Header, answer.Body, nil)
}

func (l *link) roundTrip(ctx context.Context, c call) (*h2conn.Response, error) {
	conn, err := l.get(ctx, c.urgent)
	if err != nil {
		return nil, err
	}
	r, err := l.request(c)
	if err != nil {
		return nil, err
	}
	return conn.RoundTrip(ctx, r)
}

// request builds the HTTP request of a call. Call it only after the first dial.
func (l *link) request(c call) (*h2conn.Request, error) {
	method, contentType := http.MethodGet, protobuf.ContentType
	switch c.verb {
	case "create":
		method = http.MethodPost
	case "update":
		method = http.MethodPut
	case "patch":
		method, contentType = http.MethodPatch, strategic
	case "delete", "deletecollection":
		method = http.MethodDelete
	}
	r, err := l.access.Load().Request(method, c.path)
	if err != nil {
		return nil, err
	}
	r.UserAgent, r.Accept, r.Body, r.Urgent = l.userAgent, protobuf.ContentType, c.body, c.urgent
	if len(c.body) > 0 {
		r.ContentType = contentType
	}
	return r, nil
}

// outcome returns the value of the metric label `code` for a request that got no response: the cause of err.
func outcome(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, h2conn.ErrGoAway):
		return "goaway"
	}
	return "connection"
}

// statusError returns the error of a refused request. It wraps the Status in the body, which is protobuf or JSON. If
// the body has no Status, statusError makes one from the HTTP status.
func statusError(h h2conn.Header, body []byte) *apierrors.StatusError {
	var s metav1.Status
	if decode(body, &s) != nil && json.Unmarshal(body, &s) != nil || s.Code == 0 {
		text := strings.TrimSpace(string(body[:min(len(body), 200)]))
		s = metav1.Status{
			Status: metav1.StatusFailure, Code: int32(h.Status), Message: fmt.Sprintf("the server responded with %d %s", h.Status, text),
		}
		switch h.Status {
		case http.StatusUnauthorized:
			s.Reason = metav1.StatusReasonUnauthorized
		case http.StatusForbidden:
			s.Reason = metav1.StatusReasonForbidden
		case http.StatusTooManyRequests:
			s.Reason = metav1.StatusReasonTooManyRequests
		}
	}
	if seconds := int32(h.RetryAfter / time.Second); seconds > 0 {
		if s.Details == nil {
			s.Details = &metav1.StatusDetails{}
		}
		s.Details.RetryAfterSeconds = seconds
	}
	return &apierrors.StatusError{ErrStatus: s}
}

// maxAnswer is the largest response that an exchange accepts, in bytes.
const maxAnswer = 1 << 20

// exchange is a request in flight. No goroutine waits for the response, because that would cost a stack and a wake-up.
type exchange struct {
	link   *link
	call   call
	done   func(answer []byte, err error)
	over   atomic.Bool
	stream atomic.Pointer[h2conn.Stream]
	ctx    context.Context
	unhook func() bool // undoes the registration that cancels the request when ctx ends
	header h2conn.Header
	body   []byte
}

// start sends a call without waiting for the response; it waits only for a connection with a free stream. It calls done
// once, with the result that do would return. done must not block. done runs on the connection's read loop, on the
// caller's goroutine if nothing was sent, or on a new goroutine if ctx has ended.
func (l *link) start(ctx context.Context, c call, done func(answer []byte, err error)) {
	e := &exchange{link: l, call: c, done: done, ctx: ctx}
	conn, err := l.get(ctx, c.urgent)
	var r *h2conn.Request
	if err == nil {
		r, err = l.request(c)
	}
	if err != nil {
		e.finish(h2conn.Header{}, nil, err)
		return
	}
	e.unhook = context.AfterFunc(ctx, e.cancel)
	stream, err := conn.Open(r, e)
	if err != nil {
		e.unhook()
		e.finish(h2conn.Header{}, nil, err)
		return
	}
	e.stream.Store(stream)
	if ctx.Err() != nil {
		e.cancel()
	}
}

func (e *exchange) cancel() {
	if s := e.stream.Load(); s != nil {
		s.Cancel()
	}
	e.finish(h2conn.Header{}, nil, e.ctx.Err()) // pass no response, because the read loop may be storing it
}

// Header stores the response's header. Header, Data and End implement h2conn.Handler.
func (e *exchange) Header(h h2conn.Header) { e.header = h }

// Data appends p to the body of the response.
func (e *exchange) Data(p []byte) {
	if e.call.blind && e.header.Status/100 == 2 {
		return
	}
	if len(e.body) <= maxAnswer {
		e.body = append(e.body, p...)
	}
}

// End processes the end of the response.
func (e *exchange) End(err error) {
	e.unhook()
	if err == nil && len(e.body) > maxAnswer {
		err = fmt.Errorf("the response is larger than %d bytes", maxAnswer)
	}
	e.finish(e.header, e.body, err)
}

// finish calls done with the response, or with the error if err is not nil. Only its first call has an effect.
func (e *exchange) finish(h h2conn.Header, body []byte, err error) {
	if e.over.CompareAndSwap(false, true) {
		e.done(e.link.settle(e.ctx, e.call, h, body, err))
	}
}

// settle counts a call that has ended. It returns the response and the error that the method do returns.
func (l *link) settle(ctx context.Context, c call, h h2conn.Header, body []byte, err error) ([]byte, error) {
	if err != nil {
		if ctx.Err() == nil {
			l.ledger.request(c.verb, c.resource, outcome(err))
		}
		return nil, fmt.Errorf("%s %s: %w", c.verb, c.resource, err)
	}
	l.ledger.request(c.verb, c.resource, strconv.Itoa(h.Status))
	if h.Status/100 != 2 {
		return nil, fmt.Errorf("%s %s: %w", c.verb, c.resource, statusError(h, body))
	}
	return body, nil
}
