// Package httplimit limits the size of HTTP responses.
package httplimit

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Maximum sizes of a response body in bytes, after decompression. A client that reads a whole body into a growing
// buffer needs several times as much memory.
const (
	maxAnswer  = 256 << 20
	maxQueried = 64 << 20
)

// Answers returns a RoundTripper that limits a response body to 256 MiB. Reading beyond this limit fails. The bodies of
// watches and of followed logs are streams, and have no limit.
func Answers(next http.RoundTripper) http.RoundTripper { return bounding{next, maxAnswer} }

// Queries is like Answers, but limits a response body to 64 MiB. Use it for queries to a Prometheus server.
func Queries(next http.RoundTripper) http.RoundTripper { return bounding{next, maxQueried} }

type bounding struct {
	next http.RoundTripper
	most int64
}

func (b bounding) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if query := r.URL.RawQuery; err == nil && answer.Body != nil && answer.StatusCode != http.StatusSwitchingProtocols &&
		!strings.Contains(query, "watch=") && !strings.Contains(query, "follow=") {
		answer.Body = &boundedBody{answer.Body, b.most, b.most}
	}
	return answer, err
}

// WrappedRoundTripper implements k8s.io/apimachinery's utilnet.RoundTripperWrapper. Clients use it to find the
// underlying transport, to cancel requests and to close connections.
func (b bounding) WrappedRoundTripper() http.RoundTripper { return b.next }

type boundedBody struct {
	io.ReadCloser
	most, left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the response is larger than %d bytes", b.most)
	}
	return n, err
}
