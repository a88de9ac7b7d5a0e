// Package h2conn is an HTTP/2 client for a very large number of streams with little memory and CPU time. It has three
// uses: the mostly silent watches of simulated kubelets, with one connection per kubelet; tens of thousands of watches
// on a few connections; and open-loop requests, which a client must send without ever waiting for the network. net/http
// uses two goroutines and a pipe per stream. In h2conn, one goroutine reads a connection and passes each frame to the
// Handler of the stream. An idle stream costs one map entry.
//
// The package implements a subset of RFC 9113 for clients: TLS with ALPN only, no push, no priorities, no dynamic
// header table. It obeys flow control, concurrency limits, GOAWAY, PING and SETTINGS. After an error it closes the
// connection without sending GOAWAY. It never sends a request twice.
package h2conn

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// connWindow and defaultStreamWindow are the sizes, in bytes, of the receive windows of a connection and of a stream.
// Go's HTTP/2 client has the same sizes, so a connection exerts the same back pressure as a kubelet's connection.
const (
	connWindow          = 1 << 30
	defaultStreamWindow = 4 << 20
	// defaultWindow is the size, in bytes, of a flow-control window before SETTINGS or WINDOW_UPDATE changes it.
	// largestWindow is the maximum size (RFC 9113, 6.9.2).
	defaultWindow = 65535
	largestWindow = 1<<31 - 1
)

// defaultMaxStreams is the limit of concurrent streams until the server's SETTINGS arrive. Go's server sets 100 or 250.
const defaultMaxStreams = 100

// maxFrame is the maximum length of a frame's payload, in bytes. Every peer must accept a frame of this length (RFC
// 9113, 4.2).
const maxFrame = 16384

// smallBuffer and largeBuffer limit the initial size, in bytes, of the buffer in which a connection splits decrypted
// bytes into frames. A DATA frame may be larger than the buffer.
const (
	smallBuffer = 1 << 10
	largeBuffer = 32 << 10
)

// Options configures a connection.
type Options struct {
	// TLS is the client's TLS configuration. The connection does not modify it.
	TLS *tls.Config
	// DialContext opens the TCP connection. Nil means net.Dialer.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// ReadBuffer is the size in bytes of a read buffer between TCP and TLS. A buffer saves system calls. Zero means no
	// buffer; this saves memory if many connections are silent.
	ReadBuffer int
	// Poller wakes the reader of this connection together with the readers of other connections. Use it for many mostly
	// silent connections for which a delay of a few milliseconds does not matter. Nil means that the Go runtime wakes
	// the reader.
	Poller *Poller
	// StampArrivals enables Stream.Waited, which needs arrival timestamps from the kernel. They cost a few hundred
	// nanoseconds per read.
	StampArrivals bool
	// Deferred means that the connection leaves received bytes unread until Pool.Receive or Conn.Receive is called. Use
	// it for a client that wakes up often anyway. With StampArrivals, the arrival time of a response is still known.
	// Deferred has an effect only for TCP connections on Linux.
	Deferred bool
	// StreamWindow is the flow-control window of a stream in bytes. Zero means 4 MiB, as in Go's client.
	StreamWindow uint32
	// Queued makes a separate goroutine write all queued frames together, so that opening a stream never waits for the
	// network. Without Queued, the goroutine that sends a frame writes it to the network, together with frames that
	// other goroutines queue in the meantime.
	Queued bool
	// Ping is the time without received data after which the client sends a PING. If no response arrives within 15 s,
	// the connection counts as lost. Zero means no PINGs; a dead connection then looks like a silent one. client-go
	// uses 30 s.
	Ping time.Duration
	// Urgent is the number of streams that Open keeps free for urgent requests, so that a node with a hundred starting
	// pods can still renew its Lease. TryOpen does not keep them free.
	Urgent int
}

// Conn is an HTTP/2 connection. It is safe for concurrent use.
type Conn struct {
	nc        net.Conn // the TLS connection
	raw       net.Conn // the TCP connection below nc
	options   Options
	authority []byte // encoded header field :authority
	born      time.Time
	done      chan struct{}
	settled   chan struct{} // closed when the server's first SETTINGS arrive
	pool      *Pool         // the pool that owns the connection; nil without a pool

	// Only the read loop or, on a deferred connection, Receive uses these fields. reading guards them.
	reading     sync.Mutex
	lastReceive time.Time
	deferred    deferral       // the connection, if its reads are deferred; otherwise nil
	over        bool           // whether every handler's End was called because the connection ended
	waited      *time.Duration // how long the last byte of the last read had waited in the kernel; nil if unknown
	frames      frameReader
	fields      fieldReader
	block       blockReader
	lastRead    atomic.Int64 // time of the last read, in nanoseconds since c.born; used for pings

	mu            sync.Mutex
	change        sync.Cond // signals that a stream is free, or that the connection has ended
	wake          sync.Cond // wakes the writer goroutine: something is queued, or the connection has ended
	out, spare    []byte    // the bytes to send, and a spare buffer for the next bytes
	replies       int       // number of frames in out that reply to frames of the server
	writing       bool
	unanswered    int       // number of bytes sent since the connection last had no open stream
	queues        *queues   // lengths of the socket's kernel queues, for Options.Queued
	deadline      time.Time // current write deadline
	written       chan struct{}
	resized       bool // whether a header block has set the size of the dynamic table
	streams       map[uint32]*Stream
	current       *Stream   // the stream whose handler is being called
	blocked       []*Stream // streams whose body waits for flow control
	nextID        uint32
	maxStreams    int
	sendWindow    int64
	initialWindow int64
	unreported    int // bytes of DATA read since the connection's last WINDOW_UPDATE
	err           error
	goAway        error
	ping          *time.Timer
	pinged        time.Duration // when the unanswered PING was sent; 0 if no PING is unanswered
}

// Dial connects to addr ("host:port") and waits for the server's SETTINGS. If it fails, the error is a *DialError.
func Dial(ctx context.Context, addr string, o Options) (*Conn, error) {
	return dial(ctx, addr, o, nil)
}

// DialTimeout is the time limit for the TCP and TLS handshakes together. A kubelet has the same limit.
const DialTimeout = 30 * time.Second

func dial(ctx context.Context, addr string, o Options, p *Pool) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	c, err := connect(ctx, addr, o, p)
	if err != nil {
		return nil, &DialError{addr, err}
	}
	return c, nil
}

func connect(ctx context.Context, addr string, o Options, p *Pool) (*Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	config := o.TLS.Clone()
	config.NextProtos = []string{http2.NextProtoTLS}
	// With dynamic sizing, a connection first sends small records. This helps browsers, but here it only costs more
	// system calls.
	config.DynamicRecordSizingDisabled = true
	config.ServerName = cmp.Or(config.ServerName, host)
	if o.DialContext == nil {
		o.DialContext = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	raw, err := o.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	var later deferral
	if o.Deferred {
		if raw, later, err = deferReads(raw); err != nil {
			return nil, err
		}
	}
	if later == nil {
		if raw, err = o.Poller.take(raw); err != nil {
			return nil, err
		}
	}
	var waited *time.Duration
	if o.StampArrivals {
		if waited = stampArrivals(raw); waited == nil {
			later = nil // without arrival times, the time that responses wait unread would count as latency
		}
	}
	below := raw
	if o.ReadBuffer > 0 {
		below = &buffered{raw, bufio.NewReaderSize(raw, o.ReadBuffer)}
	}
	tc := tls.Client(below, config)
	if err := tc.HandshakeContext(ctx); err != nil {
		raw.Close()
		if strings.Contains(err.Error(), "no application protocol") { // crypto/tls exports no type for this alert
			return nil, fmt.Errorf("%s %w: %w", addr, ErrNoHTTP2, err)
		}
		return nil, err
	}
	if p := tc.ConnectionState().NegotiatedProtocol; p != http2.NextProtoTLS {
		raw.Close()
		return nil, fmt.Errorf("%s %w (it negotiated %q)", addr, ErrNoHTTP2, p)
	}
	c := newConn(tc, raw, addr, o)
	c.pool, c.waited, c.deferred = p, waited, later
	c.start()
	select {
	case <-c.settled:
		return c, nil
	case <-c.done:
		return nil, c.Err()
	case <-ctx.Done():
		c.Close()
		<-c.done
		return nil, ctx.Err()
	}
}

// take adds a connection to the poller. If p is nil, take converts a TCP connection to a socket (see unscheduled).
func (p *Poller) take(nc net.Conn) (net.Conn, error) {
	if p == nil {
		return unscheduled(nc), nil
	}
	return p.add(nc)
}

type buffered struct {
	net.Conn
	r *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

func newConn(nc, raw net.Conn, authority string, o Options) *Conn {
	o.StreamWindow = min(cmp.Or(o.StreamWindow, defaultStreamWindow), largestWindow)
	c := &Conn{
		nc: nc, raw: raw, options: o, born: time.Now(),
		authority: appendNamed(nil, staticAuthority, authority),
		done:      make(chan struct{}), settled: make(chan struct{}),
		streams: map[uint32]*Stream{}, nextID: 1, maxStreams: defaultMaxStreams,
		sendWindow: defaultWindow, initialWindow: defaultWindow,
	}
	c.change.L, c.wake.L = &c.mu, &c.mu
	c.frames = newFrameReader(source{c}, max(smallBuffer, min(o.ReadBuffer, largeBuffer)))
	return c
}

// start sends the preface and starts the connection's goroutines.
func (c *Conn) start() {
	c.mu.Lock()
	c.out = append(c.out, http2.ClientPreface...)
	c.out = appendSettings(c.out, map[http2.SettingID]uint32{
		http2.SettingEnablePush: 0, http2.SettingHeaderTableSize: 0, http2.SettingInitialWindowSize: c.options.StreamWindow,
	})
	c.out = appendNumber(c.out, http2.FrameWindowUpdate, 0, connWindow-defaultWindow)
	if c.options.Queued {
		c.written = make(chan struct{})
		c.queues = newQueues(c.raw)
		go c.write()
	}
	if c.options.Ping > 0 {
		c.ping = time.AfterFunc(c.options.Ping, c.alive)
	}
	c.unlock()
	go c.read()
}

type source struct{ *Conn }

func (c source) Read(p []byte) (int, error) {
	n, err := c.nc.Read(p)
	if c.options.Ping > 0 && n > 0 {
		c.lastRead.Store(int64(time.Since(c.born)))
	}
	return n, err
}

// Usable reports whether the connection accepts new streams, now or when a stream ends.
func (c *Conn) Usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usable() == nil
}

// Free returns how many more streams the server allows now.
func (c *Conn) Free() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.maxStreams - len(c.streams)
}

func (c *Conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams) > 0
}

// usable returns nil if the connection accepts new streams, otherwise the reason. The caller holds mu.
func (c *Conn) usable() error {
	if c.err != nil {
		return c.err
	}
	if c.goAway == nil && c.nextID > 1<<30 {
		c.goAway = ErrGoAway // the client has used all stream ids
	}
	return c.goAway
}

// Done returns a channel that is closed after the connection has ended and has called End on all its handlers.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns the reason why the connection ended, or nil while it is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Backlog returns the number of bytes that the kernel has received and the connection has not read, or 0 if unknown.
func (c *Conn) Backlog() int64 { return backlog(c.raw) }

// Close ends the connection. Its streams end with ErrClosed.
func (c *Conn) Close() { c.fail(ErrClosed) }

// Abort ends the connection with a TCP reset, as a power loss does.
func (c *Conn) Abort() {
	if tcp, ok := c.raw.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0) // best effort: the connection is closing
	}
	c.fail(ErrClosed)
}

func (c *Conn) fail(err error) {
	c.mu.Lock()
	c.failLocked(err)
	c.mu.Unlock()
}

// failLocked ends the connection with err and wakes all waiters. Only the first call has an effect. Afterwards the read
// loop ends the streams. The caller holds mu.
func (c *Conn) failLocked(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	c.change.Broadcast()
	c.wake.Broadcast()
	if c.ping != nil {
		c.ping.Stop()
	}
	// Do not use tls.Conn.Close, because it would wait for a blocked writer.
	_ = c.raw.Close()
	if c.deferred != nil {
		go c.Receive() // there is no read loop that could end the streams
	}
}
