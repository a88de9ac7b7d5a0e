// Package apiclient turns a rest.Config into what an HTTP/2 connection to the
// API server needs, for the simulated nodes and the loads, which speak to it
// without client-go's transports.
package apiclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// DefaultAgent is the User-Agent of a configuration without one.
const DefaultAgent = "stormglass-loadgen"

// RenewEvery is the age at which the headers of authentication are renewed.
const RenewEvery = 5 * time.Second

// Endpoint is how an API server is reached by one client.
type Endpoint struct {
	// Addr is host:port.
	Addr string
	// Prefix is the path before /api, for a server behind a gateway.
	Prefix string
	// Agent is the User-Agent header.
	Agent string
	// TLS is the client's side: roots, server name, certificate.
	TLS *tls.Config
	// DialContext opens the connection: through a proxy, if there is one, and by rest.Config.Dial, if that is set.
	DialContext DialFunc

	authenticate func() (http.Header, error) // nil where the certificate says all
	mu           sync.Mutex
	headers      http.Header
	renewed      time.Time
}

// New reads a rest.Config. Clients of one server may share roots. It rejects a server that is not https.
func New(c *rest.Config, roots *Roots) (*Endpoint, error) {
	if c == nil {
		return nil, errors.New("no configuration of the API server's client")
	}
	server, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return nil, fmt.Errorf("the API server's address %q: %w", c.Host, err)
	}
	if server.Scheme != "https" {
		return nil, fmt.Errorf("the API server's address %q is not https (stormglass speaks HTTP/2 over TLS only)", c.Host)
	}
	port := server.Port()
	if port == "" {
		port = "443"
	}
	to := &Endpoint{
		Addr: net.JoinHostPort(server.Hostname(), port), Prefix: strings.TrimSuffix(server.Path, "/"),
		Agent: cmp.Or(c.UserAgent, DefaultAgent),
	}
	if to.DialContext, err = Dialer(c); err != nil {
		return nil, err
	}
	loaded := rest.CopyConfig(c)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return nil, fmt.Errorf("read the client's TLS files: %w", err)
	}
	ca := loaded.CAData
	c = rest.CopyConfig(c)       // with the files of the certificate, which are read again for each connection
	c.CAData, c.CAFile = nil, "" // parsed once for all nodes, below
	tc, err := c.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("client authentication: %w", err)
	}
	if to.TLS, err = transport.TLSConfigFor(tc); err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	if to.TLS == nil {
		to.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if len(ca) > 0 && !to.TLS.InsecureSkipVerify {
		if to.TLS.RootCAs, err = roots.pool(ca); err != nil {
			return nil, err
		}
	}
	if tc.HasTokenAuth() || tc.HasBasicAuth() || tc.WrapTransport != nil || tc.Impersonate.UserName != "" {
		wrapped, err := transport.HTTPWrappersForConfig(tc, headerCapture{})
		if err != nil {
			return nil, fmt.Errorf("client authentication: %w", err)
		}
		to.authenticate = func() (http.Header, error) { return captureHeaders(wrapped, server) }
	}
	return to, nil
}

// Headers returns the headers for authentication by token or impersonation, or nil if the client certificate
// suffices. It renews them after RenewEvery and returns the old ones while renewal fails. The caller must not
// modify them.
func (e *Endpoint) Headers() (http.Header, error) {
	if e.authenticate == nil {
		return nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.headers != nil && time.Since(e.renewed) < RenewEvery {
		return e.headers, nil
	}
	h, err := e.authenticate()
	if err != nil && e.headers == nil {
		return nil, err
	}
	if err == nil {
		e.headers = h
	}
	e.renewed = time.Now()
	return e.headers, nil
}

// Request returns a request with the path's prefix and the headers of authentication.
func (e *Endpoint) Request(method, path string) (*h2conn.Request, error) {
	h, err := e.Headers()
	if err != nil {
		return nil, err
	}
	return &h2conn.Request{Method: method, Path: e.Prefix + path, UserAgent: e.Agent, Extra: h}, nil
}

// Connect opens a connection. It sets the TLS configuration in o and, unless o has its own, DialContext.
func (e *Endpoint) Connect(ctx context.Context, o h2conn.Options) (*h2conn.Conn, error) {
	o.TLS = e.TLS
	if o.DialContext == nil {
		o.DialContext = e.DialContext
	}
	return h2conn.Dial(ctx, e.Addr, o)
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

// headerCapture answers with the headers that client-go's authenticating wrappers put on the request.
type headerCapture struct{}

func (headerCapture) RoundTrip(r *http.Request) (*http.Response, error) {
	h := r.Header.Clone()
	h.Del("User-Agent") // ours is set already
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: http.NoBody, Request: r}, nil
}

// Roots parses a CA once for all clients of a server. The zero value is ready.
type Roots struct {
	mu    sync.Mutex
	ca    []byte
	roots *x509.CertPool
}

func (r *Roots) pool(ca []byte) (*x509.CertPool, error) {
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
