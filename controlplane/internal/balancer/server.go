package balancer

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"syscall"
	"time"
)

// server is one backend and what is known of it, guarded by Balancer.mu.
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

// States are those of all servers.
func (b *Balancer) States() []State {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []State
	for _, s := range b.servers {
		all = append(all, State{s.Name, s.ready, len(s.conns)})
	}
	return all
}

// order lists the servers as a new connection should try them: ready ones
// first, and of those the one with the fewest connections, so that a server
// that comes back gets its share. Those that are not ready are tried last: if
// all are so slow that no check is answered, refusing would help no client.
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
