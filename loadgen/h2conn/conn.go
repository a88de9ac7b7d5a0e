// Package h2conn is an HTTP/2 client connection for very many long streams in
// little memory. A simulated kubelet holds half a dozen watches, each silent
// most of the time, on a connection of its own, as a real one does: with
// net/http that is a read loop, two goroutines per watch and their pipes, about
// 200 KB per node. Here one goroutine reads the connection and hands each
// frame to its stream's Handler; a stream at rest costs a map entry.
//
// It is a client's subset of RFC 9113: TLS with ALPN only, no push, no
// priorities; flow control, concurrency limits, GOAWAY, PING and SETTINGS are
// honoured.
package h2conn

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Windows are those of Go's own client, which a real kubelet uses, so that
// the server sees the same back pressure.
const (
	connWindow   = 1 << 30
	streamWindow = 4 << 20
	// defaultWindow of a connection and its streams (RFC 9113, 6.9.2).
	defaultWindow = 65535
)

// urgentReserve is how many of the server's concurrent streams are kept free
// for urgent requests: a node with a hundred pods starting must still be able
// to renew its lease.
const urgentReserve = 16

// defaultMaxStreams until the server's SETTINGS say otherwise; Go's server
// sends 100 or 250.
const defaultMaxStreams = 100

// writeTimeout is how long the server may leave our bytes unread before the
// connection counts as dead.
const writeTimeout = 15 * time.Second

// maxFrame is the largest DATA frame that every peer takes (RFC 9113, 4.2).
const maxFrame = 16384

// Errors of a connection that is no longer of use. The streams it had, and
// those it refused, may be tried again on another.
var (
	ErrClosed = errors.New("connection closed")
	ErrGoAway = errors.New("server is closing the connection (GOAWAY)")
)

// Conn is one connection. It is safe for concurrent use.
type Conn struct {
	nc        net.Conn
	authority string
	framer    *http2.Framer // read side: the read loop's; write side: under wmu
	done      chan struct{}

	// wmu serialises writers and orders stream ids on the wire. It is taken
	// before mu.
	wmu      sync.Mutex
	wbuf     bytes.Buffer
	hbuf     bytes.Buffer
	hpack    *hpack.Encoder
	deadline time.Time // write deadline now in force

	mu            sync.Mutex
	change        sync.Cond // slots, send windows or the end of the connection
	streams       map[uint32]*Stream
	reserved      int // streams open or about to be
	nextID        uint32
	maxStreams    int
	sendWindow    int64
	initialWindow int64
	err           error
	goAway        bool
	settled       chan struct{} // closed by the server's first SETTINGS

	unreported int // bytes of DATA read since the last WINDOW_UPDATE; the read loop's
}

// Dial connects to addr ("host:port") and returns when the server's settings
// are known. The TLS configuration is not modified.
func Dial(ctx context.Context, addr string, config *tls.Config) (*Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	config = config.Clone()
	config.NextProtos = []string{http2.NextProtoTLS}
	if config.ServerName == "" {
		config.ServerName = host
	}
	raw, err := (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	tc := tls.Client(raw, config)
	if err := tc.HandshakeContext(ctx); err != nil {
		raw.Close()
		if strings.Contains(err.Error(), "no application protocol") { // the alert has no exported type
			return nil, fmt.Errorf("%s does not offer HTTP/2: %w", addr, err)
		}
		return nil, err
	}
	if p := tc.ConnectionState().NegotiatedProtocol; p != http2.NextProtoTLS {
		raw.Close()
		return nil, fmt.Errorf("%s does not offer HTTP/2 (it negotiated %q)", addr, p)
	}
	c := newConn(tc, addr)
	if err := c.preface(); err != nil {
		raw.Close()
		return nil, err
	}
	go c.read()
	select {
	case <-c.settled:
		return c, nil
	case <-c.done:
		return nil, c.Err()
	case <-ctx.Done():
		c.Close()
		return nil, ctx.Err()
	}
}

func newConn(nc net.Conn, authority string) *Conn {
	c := &Conn{
		nc: nc, authority: authority,
		done: make(chan struct{}), settled: make(chan struct{}),
		streams: map[uint32]*Stream{}, nextID: 1, maxStreams: defaultMaxStreams,
		sendWindow: defaultWindow, initialWindow: defaultWindow,
	}
	c.change.L = &c.mu
	c.hpack = hpack.NewEncoder(&c.hbuf)
	// No dynamic table on either side: a few literal bytes more on the wire
	// instead of 8 KB of tables for each node.
	c.hpack.SetMaxDynamicTableSizeLimit(0)
	c.framer = http2.NewFramer(&c.wbuf, nc)
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(maxFrame)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	return c
}

func (c *Conn) preface() error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	c.wbuf.WriteString(http2.ClientPreface)
	_ = c.framer.WriteSettings( // to a buffer: cannot fail
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow},
	)
	_ = c.framer.WriteWindowUpdate(0, connWindow-defaultWindow)
	return c.flush()
}

// flush sends what the framer wrote. The caller holds wmu.
func (c *Conn) flush() error {
	// Moving a deadline costs a timer operation: once in a while is enough.
	if now := time.Now(); c.deadline.Sub(now) < writeTimeout {
		c.deadline = now.Add(2 * writeTimeout)
		if err := c.nc.SetWriteDeadline(c.deadline); err != nil {
			return err
		}
	}
	_, err := c.nc.Write(c.wbuf.Bytes())
	c.wbuf.Reset()
	if c.wbuf.Cap() > 2*maxFrame {
		c.wbuf = bytes.Buffer{}
	}
	return err
}

// send writes control frames.
func (c *Conn) send(write func(*http2.Framer)) {
	c.wmu.Lock()
	write(c.framer)
	err := c.flush()
	c.wmu.Unlock()
	if err != nil {
		c.fail(err)
	}
}

// Usable tells whether a new stream may be opened.
func (c *Conn) Usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && !c.goAway
}

// Done is closed when the connection has ended and every Handler was told.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ended; nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection; its streams end with ErrClosed.
func (c *Conn) Close() { c.fail(ErrClosed) }

// Abort ends the connection as a machine does that loses its power: the
// kernel sends no orderly end of the TLS session, only a reset.
func (c *Conn) Abort() {
	if tc, ok := c.nc.(*tls.Conn); ok {
		if tcp, ok := tc.NetConn().(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // best effort: it is on its way out
		}
	}
	c.fail(ErrClosed)
}

// fail records the first error and wakes everybody. The read loop, which ends
// by the closed socket, tells the streams.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	c.change.Broadcast()
	c.mu.Unlock()
	if !first {
		return
	}
	if tc, ok := c.nc.(*tls.Conn); ok {
		// Not tls.Conn.Close: it would wait for a writer that is stuck.
		_ = tc.NetConn().Close()
		return
	}
	_ = c.nc.Close()
}
