package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load/history/check"
)

// silence is how long a watch's connection may receive no data before the client checks it with an HTTP/2 PING. Other
// connections need no check, because all their requests have a timeout.
const silence = 5 * time.Second

func newRequest(to *apiclient.Endpoint, method, path string, body []byte) (*h2conn.Request, error) {
	r, err := to.Request(method, path)
	if err != nil {
		return nil, err
	}
	r.Accept, r.Body = "application/json", body
	if body != nil {
		r.ContentType = "application/json"
	}
	return r, nil
}

// connection is a client's connection to the API server. After a loss, it dials again. It is not safe for concurrent
// use.
type connection struct {
	apiclient.Connection
	to   *apiclient.Endpoint
	sent prometheus.Counter
}

// notSent is the error of an operation whose request was not sent.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// ask sends a request once. An error of type notSent means that the request was not sent. After any other error, ask
// has closed the connection, and the outcome of the request is unknown.
func (c *connection) ask(ctx context.Context, method, path string, body []byte) (*h2conn.Response, error) {
	r, err := newRequest(c.to, method, path, body)
	if err != nil {
		return nil, notSent{err}
	}
	conn, err := c.Get(ctx, func(ctx context.Context) (*h2conn.Conn, error) { return c.to.Connect(ctx, h2conn.Options{}) })
	if err != nil {
		return nil, notSent{err}
	}
	c.sent.Inc()
	answer, err := conn.RoundTrip(ctx, r)
	if err != nil {
		c.close()
	}
	return answer, err
}

// close ends the connection and waits until its goroutines have ended.
func (c *connection) close() {
	c.Drop(false)
	c.Ended(context.Background())
}

func outcome(kind check.Kind, answer *h2conn.Response, err error) check.Outcome {
	if err != nil {
		if errors.As(err, new(notSent)) {
			return check.Refused
		}
		return check.Unknown
	}
	switch s := answer.Status; {
	case 200 <= s && s < 300:
		return check.OK
	case s == http.StatusNotFound && isAbsent(answer.Body) && kind == check.Write:
		return check.Absent
	case s == http.StatusNotFound && isAbsent(answer.Body):
		return check.OK
	case s == http.StatusConflict && kind == check.Write:
		return check.Conflict
	case 400 <= s && s < 500 && s != http.StatusRequestTimeout:
		return check.Refused
	}
	return check.Unknown
}

// isAbsent reports whether the body of a 404 response says that a ConfigMap does not exist. It returns false if the
// namespace or the path does not exist.
func isAbsent(body []byte) bool {
	var status metav1.Status
	return json.Unmarshal(body, &status) == nil && status.Reason == metav1.StatusReasonNotFound &&
		status.Details != nil && status.Details.Kind == "configmaps"
}

func failed(verb, what string, answer *h2conn.Response) error {
	var status metav1.Status
	_ = json.Unmarshal(answer.Body, &status) // if it fails, the message is empty
	return fmt.Errorf("%s %s: the API server answers %d %s: %s", verb, what, answer.Status, http.StatusText(answer.Status), status.Message)
}
