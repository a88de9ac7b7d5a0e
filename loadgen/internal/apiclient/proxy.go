package apiclient

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"
	"k8s.io/client-go/rest"
)

// DialFunc opens a network connection. It has the signature of net.Dialer.DialContext.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Proxy returns the proxy for requests to the API server of c: the kubeconfig's proxy-url if set, otherwise the one in
// the environment variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY. It returns nil if there is no proxy.
func Proxy(c *rest.Config) (*url.URL, error) {
	server, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return nil, fmt.Errorf("the API server's address %q: %w", c.Host, err)
	}
	var via *url.URL
	if c.Proxy != nil {
		via, err = c.Proxy(&http.Request{URL: server})
	} else {
		via, err = httpproxy.FromEnvironment().ProxyFunc()(server)
	}
	if err != nil {
		return nil, fmt.Errorf("the proxy of %s: %w", server.Host, err)
	}
	return via, nil
}

// Dialer returns a function that opens connections to the API server of c. If Proxy returns a proxy, the function uses
// that proxy. If c.Dial is set, the function dials with it. An error that the proxy causes is a *net.OpError with Op
// "proxyconnect" or "socks connect", as in net/http.
func Dialer(c *rest.Config) (DialFunc, error) {
	direct := DialFunc(c.Dial)
	if direct == nil {
		direct = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	via, err := Proxy(c)
	if err != nil || via == nil {
		return direct, err
	}
	t := tunnel{via: via, direct: direct, open: openHTTP}
	switch via.Scheme {
	case "http", "https":
		t.address = proxyAddress(via, map[string]string{"http": "80", "https": "443"}[via.Scheme])
	case "socks5", "socks5h":
		t.address, t.open = proxyAddress(via, socksPort), openSOCKS
	default:
		return nil, fmt.Errorf("the proxy %s: scheme %q is not supported (http, https, socks5 and socks5h are)", via.Redacted(), via.Scheme)
	}
	return t.dial, nil
}

const socksPort = "1080"

func proxyAddress(via *url.URL, port string) string {
	return net.JoinHostPort(via.Hostname(), cmp.Or(via.Port(), port))
}

// tunnel opens connections through a proxy.
type tunnel struct {
	via     *url.URL
	address string // address of the proxy
	direct  DialFunc
	// open makes the proxy connect to address. conn is a connection to the proxy.
	open func(ctx context.Context, via *url.URL, conn net.Conn, address string) (net.Conn, error)
}

func (t tunnel) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := t.direct(ctx, network, t.address)
	if err != nil {
		return nil, proxyError(network, err)
	}
	// Abort the handshake with the proxy when ctx ends.
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = conn.SetDeadline(time.Unix(1, 0))
	})
	through, err := t.open(ctx, t.via, conn, address)
	if !stop() {
		<-ended
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, proxyError(network, err)
	}
	return through, nil
}

func proxyError(network string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "socks connect" {
		return err
	}
	return &net.OpError{Op: "proxyconnect", Net: network, Err: err}
}

// largestAnswer is the maximum size, in bytes, of a proxy's response to a CONNECT.
const largestAnswer = 64 << 10

// openHTTP connects to address through an HTTP proxy, with a CONNECT request (RFC 9110, 9.3.6).
func openHTTP(ctx context.Context, via *url.URL, conn net.Conn, address string) (net.Conn, error) {
	if via.Scheme == "https" {
		over := tls.Client(conn, &tls.Config{ServerName: via.Hostname(), MinVersion: tls.VersionTLS12})
		if err := over.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = over
	}
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{"User-Agent": {DefaultAgent}}}
	if u := via.User; u != nil {
		password, _ := u.Password()
		login := http.Request{Header: http.Header{}}
		login.SetBasicAuth(u.Username(), password)
		ask.Header.Set("Proxy-Authorization", login.Header.Get("Authorization"))
	}
	if err := ask.Write(conn); err != nil {
		return nil, err
	}
	said := bufio.NewReader(io.LimitReader(conn, largestAnswer))
	answer, err := http.ReadResponse(said, ask)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s does not answer like an HTTP proxy: %w", via.Redacted(), err)
	case answer.StatusCode != http.StatusOK:
		return nil, &RefusedError{Proxy: via.Redacted(), Status: answer.Status, Code: answer.StatusCode}
	case said.Buffered() > 0: // unexpected, because a TLS server waits for its client to send first
		return nil, fmt.Errorf("%s sent data before any request", via.Redacted())
	}
	return conn, nil
}

// RefusedError is the error of a CONNECT request that a proxy refused.
type RefusedError struct {
	Proxy, Status string
	Code          int
}

func (e *RefusedError) Error() string { return e.Proxy + " answers " + e.Status }

// openSOCKS performs the SOCKS5 handshake (RFC 1928) over conn. It returns conn.
func openSOCKS(ctx context.Context, via *url.URL, conn net.Conn, address string) (net.Conn, error) {
	var auth *proxy.Auth
	if u := via.User; u != nil {
		password, _ := u.Password()
		auth = &proxy.Auth{User: u.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", proxyAddress(via, socksPort), auth, nil)
	if err != nil {
		return nil, err
	}
	over, ok := dialer.(interface {
		DialWithConn(ctx context.Context, conn net.Conn, network, address string) (net.Addr, error)
	})
	if !ok {
		return nil, errors.New("golang.org/x/net/proxy cannot use an open connection")
	}
	if _, err := over.DialWithConn(ctx, conn, "tcp", address); err != nil {
		return nil, err
	}
	return conn, nil
}
