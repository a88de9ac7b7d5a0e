// Package balancer is the TCP load balancer before several API servers, as a
// cloud's or HAProxy in TCP mode: it terminates no TLS, spreads connections,
// and asks each server over TLS whether it is ready.
//
// A server that says it is not ready, or does not answer in time, gets no new
// connections; those that it has stay, so that it can end in order. One that
// is dead, which is to say that nothing listens there or it has not answered
// several checks in a row, loses its connections too: their clients would hang
// until their own timeouts.
//
// A connection costs two descriptors and, at rest, two goroutines and no
// buffer. splice(2), which io.Copy would use, was rejected: it holds two pipes
// for each connection as long as that lives, six descriptors in all.
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

// Backend is one server.
type Backend struct {
	// Name is for people; Address is where it listens, as host:port; Ready is
	// the URL that answers 200 when it takes connections.
	Name, Address, Ready string
}

// Options say how servers are checked. The zero value is meant for planes.
type Options struct {
	// Interval between the end of a check and the next. Zero: 500 ms.
	Interval time.Duration
	// Timeout of a check. Zero: 1 s.
	Timeout time.Duration
	// Fall is the number of consecutive unanswered checks after which a server is
	// dead. Zero: 3. Fewer would cut the connections of a server that is only
	// busy, and cause the storm of reconnects that a balancer should prevent.
	Fall int
}

func (o Options) withDefaults() Options {
	return Options{cmp.Or(o.Interval, 500*time.Millisecond), cmp.Or(o.Timeout, time.Second), cmp.Or(o.Fall, 3)}
}

// dialTimeout bounds a connection to a server on this machine.
const dialTimeout = time.Second

// Balancer leads connections to servers. Close it.
type Balancer struct {
	listener net.Listener
	health   *http.Client
	opts     Options
	servers  []*server
	cancel   context.CancelFunc
	running  sync.WaitGroup
	buffers  sync.Pool // shared by all connections: each is borrowed only while there is something in it

	mu     sync.Mutex
	turn   int // breaks ties
	closed bool
	// young are connections that have no server yet.
	young map[net.Conn]struct{}
}

// Listen starts a balancer at an address, as host:port. health makes the
// checks: it verifies the servers and shows an identity that may ask them.
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

// Address returns the address that it listens on, as host:port.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// Close ends all connections and waits for its goroutines.
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
		case err != nil: // out of descriptors: those that wait stay in the queue
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

// serve leads one connection to the best server that takes it.
func (b *Balancer) serve(ctx context.Context, client net.Conn) {
	dialer := net.Dialer{Timeout: dialTimeout}
	for _, s := range b.order() {
		upstream, err := dialer.DialContext(ctx, "tcp", s.Address)
		if err != nil {
			continue // its next check says why
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

// addPair makes a pair, or returns nil when the balancer is closed.
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

// server is one backend and its observed state, guarded by Balancer.mu.
type server struct {
	Backend
	ready  bool
	missed int // checks in a row that were not answered
	conns  map[*pair]struct{}
}

// State is the balancer's view of a server.
type State struct {
	Name string
	// Ready is true if it gets new connections.
	Ready bool
	// Connections are open through the balancer.
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

// order lists the servers in the order in which a new connection should try
// them: ready servers first, by the number of their connections, so that a
// server that comes back gets its share. Servers that are not ready are tried
// last: if all are so slow that no check is answered, refusing would help no
// client.
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

// cut ends all its connections. The caller holds Balancer.mu.
func (s *server) cut() {
	for p := range s.conns {
		p.close()
	}
}
