package apiclient

import (
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Counter counts the requests that client-go clients send to API servers. It does not count watches, because an API
// server counts a watch only when the watch ends. The zero value is ready to use. A Counter is safe for concurrent use.
type Counter struct{ sent atomic.Int64 }

// Sent returns the number of requests sent so far.
func (c *Counter) Sent() int64 { return c.sent.Load() }

// Counted returns a copy of config. The Counter counts the requests of all clients that use the copy.
func (c *Counter) Counted(config *rest.Config) *rest.Config {
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, c} })
	return counted
}

type counting struct {
	next    http.RoundTripper
	counter *Counter
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.RawQuery, "watch=") {
		c.counter.sent.Add(1)
	}
	return c.next.RoundTrip(r)
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper. client-go uses it to find the underlying transport, in
// order to cancel requests and close connections.
func (c counting) WrappedRoundTripper() http.RoundTripper { return c.next }
