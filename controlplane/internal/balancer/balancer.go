// Package balancer is the TCP load balancer in front of several API servers, like a cloud load balancer or HAProxy in
// TCP mode. It distributes connections without terminating TLS, and checks over TLS whether each server is ready.
//
// A server that reports that it is not ready, or does not respond in time, gets no new connections. It keeps its
// existing connections, so that it can shut down gracefully. A dead server (nothing listens at its address, or it did
// not respond to several checks in a row) loses its existing connections too; otherwise their clients would hang until
// their own timeouts.
//
// A connection uses two descriptors and two goroutines, but no buffer while it is idle. Package balancer avoids
// io.Copy, because io.Copy uses splice(2). splice keeps two pipes open for each connection, which adds four
// descriptors.
package balancer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Backend is one server behind the balancer.
type Backend struct {
	// Name is the server's name in State. Address is the host:port where the server listens. Ready is the URL of the
	// readiness check, to which the server responds with status 200 while it accepts new connections.
	Name, Address, Ready string
}

// Options configures the readiness checks. Planes use the zero value.
type Options struct {
	// Interval is the time between the end of a check and the next check. Zero means 500 ms.
	Interval time.Duration
	// Timeout is the time limit of a check. Zero means 1 s.
	Timeout time.Duration
	// Fall is the number of consecutive checks without a response after which a server counts as dead. Zero means 3.
	// With a smaller number, a server that is only busy would lose its connections, and its clients would all reconnect
	// at the same time.
	Fall int
}

func (o Options) withDefaults() Options {
	return Options{cmp.Or(o.Interval, 500*time.Millisecond), cmp.Or(o.Timeout, time.Second), cmp.Or(o.Fall, 3)}
}

const dialTimeout = time.Second

// Balancer forwards connections to servers. The caller must close it.
type Balancer struct {
	listener net.Listener
	health   *http.Client
	opts     Options
	servers  []*server
	cancel   context.CancelFunc
	running  sync.WaitGroup
	buffers  sync.Pool // shared by all connections; a connection holds a buffer only while it forwards data

	mu     sync.Mutex
	turn   int // incremented for each connection, so that servers with equally many connections take turns
	closed bool
	// young holds the client connections that are not yet forwarded to a server.
	young map[net.Conn]struct{}
}

// Listen starts a balancer at an address (host:port). health is the HTTP client for the checks. It must verify the
// servers and authenticate as a user that may call Backend.Ready.
func Listen(address string, backends []Backend, health *http.Client, opts Options) (*Balancer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("load balancer: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Balancer{listener: listener, health: health, opts: opts.withDefaults(), cancel: cancel, young: map[net.Conn]struct{}{}}
	b.buffers.New = func() any { return new([bufferSize]byte) }
	for _, backend := range backends {
		b.servers = append(b.servers, &server{Backend: backend, conns: map[*pair]struct{}{}})
	}
	for _, s := range b.servers {
		b.running.Go(func() { b.watch(ctx, s) })
	}
	b.running.Go(func() { b.accept(ctx) })
	return b, nil
}

// Address returns the address that the balancer listens on, as host:port.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// Close closes all connections and waits until the balancer's goroutines have ended.
func (b *Balancer) Close() {
	b.cancel()
	b.listener.Close()
	b.mu.Lock()
	b.closed = true
	for conn := range b.young {
		conn.Close()
	}
	for _, s := range b.servers {
		s.cut()
	}
	b.mu.Unlock()
	b.running.Wait()
}

func (b *Balancer) accept(ctx context.Context) {
	for {
		client, err := b.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors: new connections wait in the listen queue
			select {
			case <-ctx.Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		b.mu.Lock()
		if b.closed {
			client.Close()
		} else {
			b.young[client] = struct{}{}
			b.running.Go(func() { b.serve(ctx, client) })
		}
		b.mu.Unlock()
	}
}

// serve tries the servers in the sequence that order returns, and forwards one client connection to the first server
// that accepts a connection.
func (b *Balancer) serve(ctx context.Context, client net.Conn) {
	dialer := net.Dialer{Timeout: dialTimeout}
	for _, s := range b.order() {
		upstream, err := dialer.DialContext(ctx, "tcp", s.Address)
		if err != nil {
			continue // the server's next check notices the failure
		}
		if p := b.addPair(s, client, upstream); p != nil {
			p.run()
			b.mu.Lock()
			delete(s.conns, p)
			b.mu.Unlock()
			p.close()
			return
		}
		upstream.Close()
		break
	}
	b.mu.Lock()
	delete(b.young, client)
	b.mu.Unlock()
	client.Close()
}

// addPair registers a client connection and its server connection. It returns nil if the balancer is closed.
func (b *Balancer) addPair(s *server, client, upstream net.Conn) *pair {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	delete(b.young, client)
	p := &pair{client, upstream, &b.buffers}
	s.conns[p] = struct{}{}
	return p
}

// server is a backend and its observed state. Balancer.mu guards the state.
type server struct {
	Backend
	ready  bool
	missed int // number of consecutive checks without a response
	conns  map[*pair]struct{}
}

// State is the balancer's current view of a server.
type State struct {
	Name string
	// Ready reports whether the server gets new connections.
	Ready bool
	// Connections is the number of open connections to the server through the balancer.
	Connections int
}

// States returns the states of all servers.
func (b *Balancer) States() []State {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []State
	for _, s := range b.servers {
		all = append(all, State{s.Name, s.ready, len(s.conns)})
	}
	return all
}

// order returns the servers in the order in which a new connection tries them. Ready servers come first, sorted by
// their number of connections, so that a restarted server gets new connections. The other servers come last: if all
// servers are too slow to respond to a check, refusing connections would not help any client.
func (b *Balancer) order() []*server {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	at := b.turn % len(b.servers)
	order := slices.Concat(b.servers[at:], b.servers[:at])
	rank := func(s *server) int {
		if s.ready {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(x, y *server) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(len(x.conns), len(y.conns)))
	})
	return order
}

func (b *Balancer) watch(ctx context.Context, s *server) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		ready, err := b.check(ctx, s)
		if ctx.Err() != nil {
			return
		}
		b.mu.Lock()
		s.ready = ready
		switch {
		case err == nil:
			s.missed = 0
		case errors.Is(err, syscall.ECONNREFUSED): // nothing listens there
			s.missed = b.opts.Fall
		default:
			s.missed++
		}
		if s.missed >= b.opts.Fall {
			s.cut()
		}
		b.mu.Unlock()
		timer.Reset(b.opts.Interval)
	}
}

func (b *Balancer) check(ctx context.Context, s *server) (ready bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Backend.Ready, nil)
	if err != nil {
		return false, err
	}
	resp, err := b.health.Do(req)
	if err != nil {
		return false, err
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK, nil
}

// cut closes all connections of the server. The caller holds Balancer.mu.
func (s *server) cut() {
	for p := range s.conns {
		p.close()
	}
}
