package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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

// link is a node's connection to the API server, and counts its requests.
type link struct {
	// identity is asked for once, at the first dial.
	identity func(context.Context) (*rest.Config, error)
	roots    *apiclient.Roots
	ledger   *ledger

	apiclient.Connection

	access atomic.Pointer[apiclient.Endpoint] // set before the first connection
}

// get returns a usable connection.
func (l *link) get(ctx context.Context) (*h2conn.Conn, error) { return l.Get(ctx, l.dial) }

func (l *link) dial(ctx context.Context) (*h2conn.Conn, error) {
	to := l.access.Load()
	if to == nil {
		config, err := l.identity(ctx)
		if err != nil {
			return nil, err
		}
		if to, err = apiclient.New(config, l.roots); err != nil {
			return nil, err
		}
		l.access.Store(to)
	}
	conn, err := to.Connect(ctx, h2conn.Options{Urgent: 16})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", to.Addr, err)
	}
	return conn, nil
}

// call is one request, named as the API server's metrics name it.
type call struct {
	verb, resource string // "patch", "pods/status"
	method, path   string
	contentType    string
	body           []byte
	urgent         bool
	blind          bool // start need not keep what the answer holds
}

// do sends a call and waits for its answer, an *apierrors.StatusError if it is no success. All are counted.
func (l *link) do(ctx context.Context, c call) ([]byte, error) {
	answer, err := l.roundTrip(ctx, c)
	if err != nil {
		return l.settle(ctx, c, h2conn.Header{}, nil, err)
	}
	return l.settle(ctx, c, answer.Header, answer.Body, nil)
}

func (l *link) roundTrip(ctx context.Context, c call) (*h2conn.Response, error) {
	conn, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	r, err := l.request(c)
	if err != nil {
		return nil, err
	}
	r.Accept = protobuf.ContentType
	return conn.RoundTrip(ctx, r)
}

// request is valid once there was a connection.
func (l *link) request(c call) (*h2conn.Request, error) {
	r, err := l.access.Load().Request(c.method, c.path)
	if err != nil {
		return nil, err
	}
	r.UserAgent, r.ContentType, r.Body, r.Urgent = userAgent, c.contentType, c.body, c.urgent
	return r, nil
}

// outcome names a failure that brought no answer.
func outcome(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, h2conn.ErrGoAway):
		return "goaway"
	}
	return "connection"
}

// statusError is the API server's Status, in whatever form it came.
func statusError(h h2conn.Header, body []byte) *apierrors.StatusError {
	var s metav1.Status
	if decode(body, &s) != nil && json.Unmarshal(body, &s) != nil || s.Code == 0 {
		text := strings.TrimSpace(string(body[:min(len(body), 200)]))
		s = metav1.Status{
			Status: metav1.StatusFailure, Code: int32(h.Status), Message: fmt.Sprintf("the server answered %d %s", h.Status, text),
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
