// Package network simulates the network between two components and its failures: a link can be slow (another zone, a
// saturated switch) or cut (a partition).
//
// All traffic of a link passes through this process. A Listener is one link, with its own port. A Proxy is the HTTP
// CONNECT proxy of one component, and has a link for each name to which the component connects. Each link can be
// delayed, cut and restored at any time, including its open connections.
//
// A cut link drops packets silently, as a partition does: open connections hang rather than fail, new ones hang too,
// and neither side notices that the other has closed. If a client gives up a new connection, the proxy drops the
// connection, and the other side never sees it. The components detect a cut by their own keepalives, heartbeats and
// timeouts. When the link is restored, the bytes that were sent in the meantime arrive, like TCP retransmissions.
//
// Limits:
//   - A dial through a cut link succeeds, because the kernel accepts the TCP connection before this process does. Then
//     the TLS handshake or the response to CONNECT hangs. In production the dial itself would hang.
//   - A link simulates packet loss only as delay: TCP retransmits lost packets, so its users see only the delay. A link
//     has no bandwidth limit.
//   - A delay applies in each direction, so a round trip takes twice as long. The delay is inaccurate by about 100
//     microseconds, like all timers. Opening a connection takes one round trip, like SYN and SYN-ACK.
//   - A link that is neither slow nor cut adds about 20 microseconds to each exchange (median of 1000-byte echoes: 35
//     microseconds over the link, 15 directly).
//   - In each direction, up to 1024 reads of up to 32 KiB may be queued. Further data waits at the sender.
//
// The pipes, and the switch of a pipe from one condition to another, come from toxiproxy (packages toxics and stream).
// This package does not use toxiproxy's proxy, which drops bytes when a toxic is removed while the receiver is busy, or
// the timeout toxic, which always drops bytes. Dropped bytes break a TLS connection permanently.
package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Condition is the delay and the cut of a link. The zero value is a link that is neither slow nor cut. control.Fault
// has already checked the bounds.
type Condition struct {
	// Delay is the delay of data in each direction.
	Delay time.Duration
	// Jitter is the maximum random change of Delay, up or down, with a uniform distribution. It is at most Delay. Bytes
	// never overtake each other.
	Jitter time.Duration
	// Seed is the seed of the jitter. The same seed gives the same random sequences. Each direction of each connection
	// has its own sequence.
	Seed int64
	// Cut stops all data.
	Cut bool
}

// Link carries connections from one component, which dials, to another component. Its methods are safe for concurrent
// use.
type Link struct {
	from, to, upstream string

	mu        sync.Mutex
	opened    int64 // number of connections since the link was created
	condition Condition
	changed   chan struct{} // closed when the condition changes
	conns     map[*conn]struct{}
	life      context.Context // ends when the link is closed
	end       context.CancelFunc
	running   sync.WaitGroup
}

func newLink(from, to, upstream string) *Link {
	l := &Link{from: from, to: to, upstream: upstream, changed: make(chan struct{}), conns: map[*conn]struct{}{}}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// From returns the component that opens the connections. To returns the component to which the connections lead.
func (l *Link) From() string { return l.from }
func (l *Link) To() string   { return l.to }

// String returns a name such as "etcd-0 -> etcd-1".
func (l *Link) String() string { return l.from + " -> " + l.to }

// Delay makes the link slow. A zero delay ends an earlier delay. Delay does not end a cut.
func (l *Link) Delay(delay, jitter time.Duration, seed int64) {
	l.change(func(c *Condition) { c.Delay, c.Jitter, c.Seed = delay, jitter, seed })
}

// Cut stops all data on the link until Restore.
func (l *Link) Cut() {
	l.change(func(c *Condition) { c.Cut = true })
}

// Restore ends a cut and a delay.
func (l *Link) Restore() {
	l.change(func(c *Condition) { *c = Condition{} })
}

// change changes the condition of the link. When it returns, the new condition applies to all data that is sent later,
// also on open connections. In each direction, the one chunk that the link was delaying or passing on arrives
// immediately. On a connection whose receiver does not read, the new condition applies once the receiver reads again.
func (l *Link) change(edit func(*Condition)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	edit(&l.condition)
	close(l.changed)
	l.changed = make(chan struct{})
	// Notify all directions before waiting for any of them, so that a stuck direction does not delay another one.
	var turned []func(patience <-chan time.Time) bool
	for conn := range l.conns {
		for _, d := range conn.directions() {
			turned = append(turned, d.turn(l.condition))
		}
	}
	patience := time.NewTimer(turnPatience)
	defer patience.Stop()
	for _, wait := range turned {
		if !wait(patience.C) {
			break
		}
	}
}

// turnPatience is the maximum time that change waits until all connections apply the new condition.
const turnPatience = 50 * time.Millisecond

// state returns the condition of the link, and a channel that is closed when the condition changes.
func (l *Link) state() (Condition, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.condition, l.changed
}

// Listener is a link with its own port. Clients connect to the port and reach the other component.
type Listener struct {
	link *Link
	port *port
}

// Listen opens a link from one component to another. `listen` is a loopback address; port 0 means any free port.
// `upstream` is the address of the other component, which need not listen yet.
func Listen(from, to, listen, upstream string) (*Listener, error) {
	link := newLink(from, to, upstream)
	p, err := open(listen, func(c *net.TCPConn) {
		link.carry(c, c, func(err error) error { return err })
	})
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", link, err)
	}
	return &Listener{link, p}, nil
}

// Link returns the link. Its methods delay and cut the link.
func (l *Listener) Link() *Link { return l.link }

// Close ends the listener and its connections, and returns when they have ended.
func (l *Listener) Close() error {
	err := l.port.stop()
	l.link.close()
	l.port.wait()
	return err
}

type port struct {
	listener *net.TCPListener
	serve    func(*net.TCPConn)
	running  sync.WaitGroup
}

func open(address string, serve func(*net.TCPConn)) (*port, error) {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("listen on %s: not a loopback address (use 127.0.0.1)", address)
	}
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, err // the error names the address
	}
	p := &port{listener: listener, serve: serve}
	p.running.Go(p.accept)
	return p, nil
}

func (p *port) accept() {
	for {
		switch c, err := p.listener.AcceptTCP(); {
		case err == nil:
			p.running.Go(func() { p.serve(c) })
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors: some may be free soon
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// stop closes the listener. Calling it again does nothing.
func (p *port) stop() error {
	if err := p.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (p *port) wait() { p.running.Wait() }
