// Package network simulates the network between two components and its failures: a link can be slow (another zone, a
// saturated switch) or cut (a partition).
//
// All traffic of a link passes through this process: a Listener forwards one port, a Proxy is an
// HTTP CONNECT proxy of one component, with a link for each name that it connects to. Each link can
// be delayed, cut and restored at any time, open connections included.
//
// A cut link drops packets silently, as a partition does: open connections hang rather than fail, new ones hang too,
// and neither side notices that the other has closed. If a client gives up a new connection, the proxy forgets it,
// and the other side never sees it. Keepalives, heartbeats and timeouts are up to the components. When the link is
// restored, the bytes sent meanwhile arrive, as TCP's retransmissions would.
//
// Limits:
//   - The kernel accepts a TCP connection before this process does, so a dial through a cut link succeeds, and the
//     TLS handshake or the answer to CONNECT hangs. In production the dial itself would hang.
//   - Packet loss appears as delay, as it does to TCP. A link has no bandwidth limit.
//   - Delays count separately in each direction. They are inaccurate by some 100 microseconds, as timers are. Opening
//     a connection takes one round trip, as SYN and its answer do.
//   - A link that is neither slow nor cut costs each exchange some 20
//     microseconds (the median of 1000-byte echoes: 35 through it, 15 without).
//   - In each direction, up to 1024 reads of up to 32 KiB may be queued. Further data waits at the sender.
//
// The pipes and their transition from one condition to another are toxiproxy's (packages toxics and
// stream). Its proxy is not used: it drops bytes when a toxic is removed while the receiver is
// busy, and its timeout toxic always drops them, which breaks every TLS connection permanently.
package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Condition is the state of a link. The zero value means neither slow nor cut. control.Fault has checked its bounds.
type Condition struct {
	// Delay is the delay of data in each direction.
	Delay time.Duration
	// Jitter is the maximum random change of Delay, up or down, with a uniform distribution. At most Delay. The order
	// of bytes is kept.
	Jitter time.Duration
	// Seed is the seed of the jitter. The same seed gives the same sequences: one for each direction of each
	// connection of a link.
	Seed int64
	// Cut lets nothing through.
	Cut bool
}

// Link carries connections from one component, which dials, to another. Its methods are safe for concurrent use.
type Link struct {
	from, to, upstream string

	mu        sync.Mutex
	opened    int64 // connections since the link was made
	condition Condition
	changed   chan struct{} // closed at the next change
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

// From returns the component that dials, To the component that it reaches.
func (l *Link) From() string { return l.from }
func (l *Link) To() string   { return l.to }

// String returns a name such as "etcd-0 -> etcd-1".
func (l *Link) String() string { return l.from + " -> " + l.to }

// Delay makes the link slow; zero ends that. A cut stays.
func (l *Link) Delay(delay, jitter time.Duration, seed int64) {
	l.change(func(c *Condition) { c.Delay, c.Jitter, c.Seed = delay, jitter, seed })
}

// Cut stops all data on the link.
func (l *Link) Cut() {
	l.change(func(c *Condition) { c.Cut = true })
}

// Restore ends a cut and a delay.
func (l *Link) Restore() {
	l.change(func(c *Condition) { *c = Condition{} })
}

// change puts the link in another condition. When it returns, the condition holds for all data that
// is sent from then on, on open connections too. In each direction, the one read that was being
// delayed or passed on arrives immediately. The exception is a connection with a receiver that does
// not read: nothing moves there, and the condition holds as soon as something does.
func (l *Link) change(edit func(*Condition)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	edit(&l.condition)
	close(l.changed)
	l.changed = make(chan struct{})
	// Notify all directions before waiting for any, so that a stuck one does not delay the others.
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

// turnPatience bounds how long a change waits until connections apply it.
const turnPatience = 50 * time.Millisecond

// state returns the condition, and a channel that is closed when it changes.
func (l *Link) state() (Condition, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.condition, l.changed
}

// Listener is a link with its own port: a client that connects to it reaches the other component.
type Listener struct {
	link *Link
	port *port
}

// Listen opens a link from one component to another. listen is a loopback address (port 0: any free port). upstream
// is the address of the other component, which need not listen yet.
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

// Link returns the link, to delay and cut it.
func (l *Listener) Link() *Link { return l.link }

// Close ends the listener and its connections, and waits for them.
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
		return nil, fmt.Errorf("listen on %s: not an address of this machine alone; use 127.0.0.1", address)
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

// stop closes the listener. It may be called again.
func (p *port) stop() error {
	if err := p.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (p *port) wait() { p.running.Wait() }
