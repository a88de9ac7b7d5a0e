package h2conn

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/http2"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
)

func pool(t *testing.T, s *h2test.Server, spread int) *Pool {
	p := NewPool(s.Addr(), Options{TLS: s.TLS(), Queued: true}, spread)
	t.Cleanup(p.Close)
	return p
}

// silent returns a server that never responds, and that allows two streams per connection.
func silent(t *testing.T) *h2test.Server {
	return h2test.Serve(t, h2test.Options{Settings: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 2}}})
}

func openOn(t *testing.T, p *Pool) (*Conn, *Stream, *collector) {
	t.Helper()
	c, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, h := &Stream{}, collect()
	if err := c.TryOpen(s, get, []byte("/"), nil, h); err != nil {
		t.Fatal(err)
	}
	return c, s, h
}

// New streams use the first connections in turn. Only when these are full does the pool open another connection.
func TestPoolGoesInTurns(t *testing.T) {
	s := silent(t)
	p := pool(t, s, 3)
	if err := p.Open(t.Context()); err != nil || s.Connections.Load() != 3 {
		t.Fatalf("Open: %v; %d connections, want 3", err, s.Connections.Load())
	}
	count := map[*Conn]int{}
	for i := range 6 {
		c, _, _ := openOn(t, p)
		if count[c]++; count[c] != i/3+1 {
			t.Errorf("stream %d: %v", i, count)
		}
	}
	if s.Connections.Load() != 3 {
		t.Errorf("%d connections", s.Connections.Load())
	}
	if c, _, _ := openOn(t, p); count[c] != 0 || s.Connections.Load() != 4 {
		t.Errorf("the seventh stream did not use a fourth connection: %d connections", s.Connections.Load())
	}
}

// If TryAcquire found no free stream, Changed reports when one becomes free.
func TestPoolTellsOfAFreeStream(t *testing.T) {
	s := silent(t)
	dials := make(chan struct{}, 1)
	dials <- struct{}{}
	p := NewPool(s.Addr(), Options{TLS: s.TLS(), DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case <-dials:
			return new(net.Dialer).DialContext(ctx, network, addr)
		case <-ctx.Done(): // there is no second request
			return nil, ctx.Err()
		}
	}}, 1)
	t.Cleanup(p.Close)
	_, first, _ := openOn(t, p)
	openOn(t, p)
	if _, err := p.TryAcquire(); err != ErrBusy {
		t.Fatalf("TryAcquire of a third stream: %v, want ErrBusy", err)
	}
	changed := p.Changed()
	select {
	case <-changed:
		t.Fatal("Changed reports a free stream, but none is free")
	default:
	}
	first.Cancel()
	<-changed
	if _, err := p.TryAcquire(); err != nil {
		t.Error(err)
	}
}

func TestPoolManyAtOnce(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(200, []byte("{}")), Settings: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 5}}})
	p := pool(t, s, 2)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 50 {
				c, err := p.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if r, err := c.RoundTrip(t.Context(), &Request{Method: "GET", Path: "/"}); err != nil || r.Status != 200 {
					t.Errorf("%v %v", r, err)
				}
			}
		})
	}
	wg.Wait()
	if s.Asked.Load() != 1000 {
		t.Errorf("the server got %d requests, want 1000", s.Asked.Load())
	}
}

func TestPoolForgetsTheDead(t *testing.T) {
	s := silent(t)
	p := pool(t, s, 1)
	dead, _, h := openOn(t, p)
	s.Drop()
	var lost *LostError
	if err := h.wait(t); !errors.As(err, &lost) {
		t.Errorf("the stream ended with %v, want a LostError", err)
	}
	<-dead.Done()
	if c, _, _ := openOn(t, p); c == dead {
		t.Error("the pool returned the dead connection")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) != 1 || len(p.leaving) != 0 {
		t.Errorf("%d connections and %d leaving, want 1 and 0", len(p.conns), len(p.leaving))
	}
}

func TestPoolSaysWhyItCannotDial(t *testing.T) {
	p := NewPool("127.0.0.1:1", Options{TLS: silent(t).TLS()}, 1)
	defer p.Close()
	var dial *DialError
	if _, err := p.Acquire(t.Context()); !errors.As(err, &dial) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("acquired: %v", err)
	}
	if n, err := p.Failed(); n != 1 || !errors.As(err, &dial) {
		t.Errorf("Failed: %d, %v; want 1 and a DialError", n, err)
	}
	if err := p.Open(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("opened: %v", err)
	}
}

func TestPoolCloseEndsAll(t *testing.T) {
	s := silent(t)
	p := pool(t, s, 2)
	var ended []*collector
	for range 4 {
		_, _, h := openOn(t, p)
		ended = append(ended, h)
	}
	p.Close()
	for _, h := range ended {
		if h.ends.Load() != 1 || h.err != ErrClosed {
			t.Errorf("End called %d times, the last time with %v; want once, with ErrClosed", h.ends.Load(), h.err)
		}
	}
	if _, err := p.TryAcquire(); err != ErrClosed {
		t.Errorf("acquired: %v", err)
	}
	if _, err := p.Acquire(t.Context()); err != ErrClosed {
		t.Errorf("acquired: %v", err)
	}
}
