package traffic

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Time limits of connections. The pings are client-go's
// (apimachinery/pkg/util/net: a ping after 30 s of silence, lost after 15 s):
// without them a watch on a dead connection looks like a quiet one.
const (
	dialTimeout = 30 * time.Second
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

// streamWindow bounds what the server may send ahead on one stream, and so
// what a slow reader can cost us in memory. Go's default is 4 MiB.
const streamWindow = 256 << 10

// pool is the connections of one load to one API server. It is used in place
// of http.Transport's own pool because that one hides what a load generator
// must show: it repeats requests by itself. net/http sends again, on another
// connection and with no sign to the caller, a request that
//
//   - was refused with REFUSED_STREAM or lies past the last stream of a GOAWAY
//     (HTTP/2), whatever its method, if its body is nil or GetBody is set;
//   - was lost with a reused HTTP/1.1 connection before the first byte of an
//     answer, if its method is GET, HEAD, OPTIONS or TRACE.
//
// http.ClientConn repeats nothing: each of these is an error, which is
// counted, under "reset". What connections are made is then ours to say:
//
//   - HTTP/2, many streams on each connection, as client-go has it. A
//     connection takes what the server allows it (100 streams at a
//     kube-apiserver: --http2-max-streams-per-connection), then another is
//     opened: 2,000 watches make 20 connections.
//   - Requests go round at least `spread` connections, since one connection is
//     one read loop here and one write loop at the server, and its queue would
//     be measured as the server's latency.
//
// With an HTTP/1.1 server each connection takes one request at a time.
type pool struct {
	transport *http.Transport
	scheme    string
	address   string
	spread    int

	mu      sync.Mutex
	conns   []*conn
	next    int   // where the search for a free stream begins
	dialing *dial // in flight, if any
	dialed  *coalescing
	closed  bool
}

// conn is one connection.
type conn struct {
	*http.ClientConn
	under *coalescing // nil if it holds nothing back
}

// dial is one attempt to open a connection, awaited by all who need one.
type dial struct {
	done chan struct{}
	err  error
}

// usage is how a load uses its connections.
type usage struct {
	// spread is how many connections are open before any is filled.
	spread int
	// mostlyReads: what is written is not what is measured.
	mostlyReads bool
}

func newPool(config *rest.Config, base *url.URL, use usage) (*pool, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("TLS of %s: %w", base.Host, err)
	}
	transport := &http.Transport{
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: dialTimeout,
		// What is measured is the answer as it was sent; requests that may be
		// answered compressed say so themselves.
		DisableCompression: true,
		Proxy:              config.Proxy,
		DialContext:        config.Dial,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamWindow,
			SendPingTimeout:           pingAfter,
			PingTimeout:               pingTimeout,
		},
		Protocols: new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	transport.Protocols.SetHTTP2(true)
	if transport.Proxy == nil {
		transport.Proxy = http.ProxyFromEnvironment
	}
	if transport.DialContext == nil {
		transport.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: pingAfter}).DialContext
	}
	port := base.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[base.Scheme]
	}
	p := &pool{
		transport: transport, scheme: base.Scheme, spread: use.spread,
		address: net.JoinHostPort(base.Hostname(), port),
	}
	if use.mostlyReads {
		p.coalesce()
	}
	return p, nil
}

// coalesce makes the pool's connections hold back small writes. They are
// dialed one at a time, so the last one dialed is that of the dial in flight.
func (p *pool) coalesce() {
	dial := p.transport.DialContext
	p.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &coalescing{Conn: nc}
		p.mu.Lock()
		p.dialed = c
		p.mu.Unlock()
		return c, nil
	}
}

// RoundTrip sends the request on a connection with a free stream, and opens
// one if there is none.
func (p *pool) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := p.acquire(req.Context())
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	if c.under != nil {
		c.under.urgent.Add(1)
		defer c.under.urgent.Add(-1)
	}
	return c.RoundTrip(req)
}

// acquire reserves a stream.
func (p *pool) acquire(ctx context.Context) (*conn, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, net.ErrClosed
		}
		if c := p.reserve(); c != nil {
			p.mu.Unlock()
			return c, nil
		}
		d := p.dial()
		p.mu.Unlock()
		select {
		case <-d.done:
			if d.err != nil {
				return nil, d.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// reserve takes a stream on a connection that has one, in turns, and forgets
// dead connections. The lock is held.
func (p *pool) reserve() *conn {
	for tries := len(p.conns); tries > 0; tries-- {
		p.next %= len(p.conns)
		c := p.conns[p.next]
		if c.Reserve() == nil {
			if len(p.conns) <= p.spread {
				p.next++
			}
			return c
		}
		if c.Err() != nil {
			p.conns = append(p.conns[:p.next], p.conns[p.next+1:]...)
			if len(p.conns) == 0 {
				return nil
			}
			continue
		}
		p.next++
	}
	return nil
}

// dial opens a connection; one at a time, since each brings room for many. It
// outlives the request that asked for it: others wait for it too. The lock is
// held.
func (p *pool) dial() *dial {
	if p.dialing != nil {
		return p.dialing
	}
	d := &dial{done: make(chan struct{})}
	p.dialing = d
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
		defer cancel()
		cc, err := p.transport.NewClientConn(ctx, p.scheme, p.address)
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case err != nil:
			d.err = err
		case p.closed:
			cc.Close()
			d.err = net.ErrClosed
		default:
			p.next = len(p.conns)
			p.conns = append(p.conns, &conn{cc, p.dialed})
		}
		p.dialing, p.dialed = nil, nil
		close(d.done)
	}()
	return d
}

// open dials until there are spread connections, so that no measured request
// waits for a handshake that a client of long standing would not make.
func (p *pool) open(ctx context.Context) error {
	for {
		p.mu.Lock()
		if len(p.conns) >= p.spread || p.closed {
			p.mu.Unlock()
			return nil
		}
		d := p.dial()
		p.mu.Unlock()
		select {
		case <-d.done:
			if d.err != nil {
				return fmt.Errorf("connect to %s: %w", p.address, d.err)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// close ends all connections.
func (p *pool) close() {
	p.mu.Lock()
	conns, d := p.conns, p.dialing
	p.conns, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	if d != nil {
		<-d.done
	}
	p.transport.CloseIdleConnections()
}
