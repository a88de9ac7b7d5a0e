package node

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// access is how a link reaches the server.
type access struct {
	addr    string // host:port
	prefix  string // path before /api, for a server behind a gateway
	tls     *tls.Config
	headers func() (http.Header, error) // nil where the certificate says all
}

// newAccess turns a rest.Config into what a connection needs: address, TLS
// side, and the headers of each request where tokens are in use (static, from
// a file, or from an exec plugin).
func newAccess(c *rest.Config, roots *rootCache) (*access, error) {
	server, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return nil, fmt.Errorf("the API server's address %q: %w", c.Host, err)
	}
	if server.Scheme != "https" {
		return nil, fmt.Errorf("the API server's address %q is not https (simulated nodes speak HTTP/2 over TLS only)", c.Host)
	}
	port := server.Port()
	if port == "" {
		port = "443"
	}
	to := &access{addr: net.JoinHostPort(server.Hostname(), port), prefix: strings.TrimSuffix(server.Path, "/")}
	c = rest.CopyConfig(c)
	if err := rest.LoadTLSFiles(c); err != nil {
		return nil, fmt.Errorf("read the client's TLS files: %w", err)
	}
	ca := c.CAData
	c.CAData, c.CAFile = nil, "" // parsed once for all nodes, below
	tc, err := c.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("client authentication: %w", err)
	}
	if to.tls, err = transport.TLSConfigFor(tc); err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	if to.tls == nil {
		to.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if len(ca) > 0 && !to.tls.InsecureSkipVerify {
		if to.tls.RootCAs, err = roots.pool(ca); err != nil {
			return nil, err
		}
	}
	if tc.HasTokenAuth() || tc.HasBasicAuth() || tc.WrapTransport != nil || tc.Impersonate.UserName != "" {
		wrapped, err := transport.HTTPWrappersForConfig(tc, headerCapture{})
		if err != nil {
			return nil, fmt.Errorf("client authentication: %w", err)
		}
		to.headers = func() (http.Header, error) { return captureHeaders(wrapped, server) }
	}
	return to, nil
}

func captureHeaders(wrapped http.RoundTripper, server *url.URL) (http.Header, error) {
	r, err := http.NewRequest(http.MethodGet, server.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := wrapped.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("client authentication: %w", err)
	}
	return answer.Header, nil
}

// headerCapture is a transport that answers with the headers client-go's
// authenticating wrappers put on the request.
type headerCapture struct{}

func (headerCapture) RoundTrip(r *http.Request) (*http.Response, error) {
	h := r.Header.Clone()
	h.Del("User-Agent") // ours is set already
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: http.NoBody, Request: r}, nil
}

// rootCache parses a CA once for all nodes instead of once for each.
type rootCache struct {
	mu    sync.Mutex
	ca    []byte
	roots *x509.CertPool
}

func (r *rootCache) pool(ca []byte) (*x509.CertPool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.roots != nil && bytes.Equal(ca, r.ca) {
		return r.roots, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the server's CA holds no PEM certificate")
	}
	r.ca, r.roots = ca, roots
	return roots, nil
}
