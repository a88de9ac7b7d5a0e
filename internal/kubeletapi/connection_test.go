package kubeletapi

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
)

// cut is a node that is unreachable until the channel `until` is closed. It is reachable if the channel is nil.
type cut struct {
	one
	until chan struct{}
}

func (c *cut) Unreachable() <-chan struct{} { return c.until }

func TestOpenConnectionsOfANodeThatIsNotReached(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	node := &cut{}
	all := &connections{node: func(netip.AddrPort) Node { return node }, open: map[*connection]bool{}}
	client, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := (&listener{inner, all}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	until := make(chan struct{})
	node.until = until
	written := make(chan error)
	go func() {
		_, err := server.Write([]byte("answer"))
		written <- err
	}()
	select {
	case err := <-written:
		t.Errorf("the unreachable node responds: %v", err)
	default:
	}
	close(until)
	if err := <-written; err != nil {
		t.Error(err)
	}
	got := make([]byte, 6)
	if _, err := client.Read(got); err != nil || string(got) != "answer" {
		t.Errorf("once it is reached: %q, %v", got, err)
	}
	all.reset(func(n Node) bool { return n == node })
	if _, err := client.Read(got); err == nil {
		t.Error("a connection stays open after its node has gone")
	}
	if len(all.open) != 0 {
		t.Errorf("the server keeps %d connections", len(all.open))
	}
}

// unreached is a node that is reachable until the test stores a channel in until.
type unreached struct {
	one
	until atomic.Pointer[chan struct{}]
}

func (l *unreached) Unreachable() <-chan struct{} {
	if until := l.until.Load(); until != nil {
		return *until
	}
	return nil
}

// Close returns although a node is unreachable and TLS cannot send close_notify on the node's connections.
func TestCloseWithANodeThatIsNotReached(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	node := &unreached{}
	s := &Server{connections: &connections{node: func(netip.AddrPort) Node { return node }, open: map[*connection]bool{}}}
	s.http = &http.Server{TLSConfig: &tls.Config{Certificates: certified.TLS.Certificates}, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	client := certified.Client()
	answer, err := client.Get("https://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	until := make(chan struct{})
	node.until.Store(&until)
	if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
