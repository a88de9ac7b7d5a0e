package apiclient

import (
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Counter counts the requests that clients of client-go send to API servers. Watches, which API servers count when they end,
// are left out. The zero value is ready, and safe for concurrent use.
type Counter struct{ sent atomic.Int64 }

// Sent returns the number of requests sent so far.
func (c *Counter) Sent() int64 { return c.sent.Load() }

// Counted returns a copy of a config whose clients are counted.
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

// WrappedRoundTripper implements utilnet.RoundTripperWrapper: clients look below for a transport that they can cancel and
// close.
func (c counting) WrappedRoundTripper() http.RoundTripper { return c.next }
