package h2conn

import (
	"testing"

	"golang.org/x/net/http2"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
)

// slowReader is a handler whose method Header blocks until the test releases it.
type slowReader struct {
	*collector
	busy, let chan struct{}
}

func (s *slowReader) Header(h Header) {
	close(s.busy)
	<-s.let
	s.collector.Header(h)
}

// Backlog returns the number of bytes that the server has sent and the client has not read.
func TestBacklog(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: func(p *h2test.Peer, id uint32) {
		p.Send(func(w *http2.Framer) {
			_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h2test.Block(200, -1), EndHeaders: true})
		})
		for i := range 20 {
			p.Send(func(w *http2.Framer) { _ = w.WriteData(id, i == 19, make([]byte, 10_000)) })
		}
	}})
	p := pool(t, s, 1)
	c, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := &slowReader{collect(), make(chan struct{}), make(chan struct{})}
	if err := c.TryOpen(&Stream{}, get, []byte("/"), nil, h); err != nil {
		t.Fatal(err)
	}
	<-h.busy
	h2test.Await(t, "a backlog", func() bool { return p.Backlog() > 50_000 })
	close(h.let)
	if err := h.wait(t); err != nil || h.body.Load() != 200_000 {
		t.Errorf("the stream ended with %v, after %d bytes", err, h.body.Load())
	}
	if n := p.Backlog(); n != 0 {
		t.Errorf("backlog of %d bytes after the client read everything", n)
	}
}
