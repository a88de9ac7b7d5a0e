// Package apiclient connects simulated nodes and loads to the API server. Its clients take their configuration from a
// rest.Config, but use HTTP/2 connections of package h2conn instead of client-go's transports.
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

// DefaultAgent is the User-Agent for a configuration that sets none.
const DefaultAgent = "stormglass-loadgen"

// RenewEvery is the age at which Endpoint.Headers renews cached authentication headers.
const RenewEvery = 5 * time.Second

// Endpoint holds the address of an API server and the credentials of one client.
type Endpoint struct {
	// Addr is the server's address, host:port.
	Addr string
	// Prefix is the path before /api, for a server behind a gateway. May be empty.
	Prefix string
	// Agent is the User-Agent header.
	Agent string
	// TLS is the client's TLS configuration: roots, server name and client certificate.
	TLS *tls.Config
	// DialContext opens TCP connections to the server, through the proxy if there is one (see Dialer).
	DialContext DialFunc

	authenticate func() (http.Header, error) // returns authentication headers; nil if the client certificate suffices
	mu           sync.Mutex
	headers      http.Header
	renewed      time.Time
}

// New returns the Endpoint for a rest.Config. roots caches the parsed CA; all clients of a server can share roots. New
// fails if the server's URL is not https.
func New(c *rest.Config, roots *Roots) (*Endpoint, error) {
	if c == nil {
		return nil, errors.New("no client configuration for the API server")
	}
	server, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return nil, fmt.Errorf("the API server's address %q: %w", c.Host, err)
	}
	if server.Scheme != "https" {
		return nil, fmt.Errorf("the API server's address %q is not https (stormglass speaks HTTP/2 over TLS only)", c.Host)
	}
	to := &Endpoint{
		Addr: net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443")), Prefix: strings.TrimSuffix(server.Path, "/"),
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
	c = rest.CopyConfig(c)       // keeps the client certificate's paths: each connection reads the files again
	c.CAData, c.CAFile = nil, "" // the CA is parsed below, once for all clients
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

// Headers returns the headers for authentication, such as a token or impersonation, or nil if the client certificate
// suffices. If the headers are older than RenewEvery, it renews them. If the renewal fails, it returns the old ones.
// The caller must not modify the headers.
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

// Request returns a request with the authentication headers. The request's path is Prefix followed by path.
func (e *Endpoint) Request(method, path string) (*h2conn.Request, error) {
	h, err := e.Headers()
	if err != nil {
		return nil, err
	}
	return &h2conn.Request{Method: method, Path: e.Prefix + path, UserAgent: e.Agent, Extra: h}, nil
}

// Connect opens a connection to the API server, with the TLS configuration of e. If o.DialContext is nil, it dials with
// e.DialContext.
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

// headerCapture is a RoundTripper that sends nothing. It returns a response with the headers of the request. Endpoint
// uses it to obtain the headers that client-go's authenticating wrappers set.
type headerCapture struct{}

func (headerCapture) RoundTrip(r *http.Request) (*http.Response, error) {
	h := r.Header.Clone()
	h.Del("User-Agent") // Agent replaces it
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: http.NoBody, Request: r}, nil
}

// Roots caches a parsed CA for all clients of a server. The zero value is ready to use.
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
