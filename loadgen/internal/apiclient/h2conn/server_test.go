package h2conn

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
)

// to returns a connection to the server s.
func to(t *testing.T, s *h2test.Server, o Options) *Conn {
	t.Helper()
	o.TLS = s.TLS()
	c, err := Dial(t.Context(), s.Addr(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
	})
	return c
}

// collector is a handler that records the response.
type collector struct {
	status int
	body   atomic.Int64
	ends   atomic.Int32
	err    error
	done   chan struct{}
}

func collect() *collector { return &collector{done: make(chan struct{})} }

func (c *collector) Header(h Header) { c.status = h.Status }
func (c *collector) Data(p []byte)   { c.body.Add(int64(len(p))) }
func (c *collector) End(err error) {
	if c.err = err; c.ends.Add(1) == 1 {
		close(c.done)
	}
}

// holder is a handler that calls HoldWindow when it gets the response's headers.
type holder struct {
	*collector
	stream *Stream
}

func (h *holder) Header(header Header) {
	h.stream.HoldWindow()
	h.collector.Header(header)
}

func (c *collector) wait(t *testing.T) error {
	t.Helper()
	select {
	case <-c.done:
		return c.err
	case <-time.After(patience):
		t.Fatal("the stream has not ended in time")
		return nil
	}
}

var get = NewTemplate(Request{Method: "GET", Accept: "application/json", UserAgent: "test"})

func TestErrorsAreTyped(t *testing.T) {
	write := func(f func(*http2.Framer, uint32)) func(*h2test.Peer, uint32) {
		return func(p *h2test.Peer, id uint32) { p.Send(func(w *http2.Framer) { f(w, id) }) }
	}
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	protocol := func(code http2.ErrCode) func(error) bool {
		return func(err error) bool {
			var e *ProtocolError
			return errors.As(err, &e) && e.Code == code
		}
	}
	headers := func(w *http2.Framer, id uint32, block []byte, end bool) {
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: end})
	}
	for name, c := range map[string]struct {
		answer func(*h2test.Peer, uint32)
		want   func(error) bool
	}{
		"reset with its code": {write(func(w *http2.Framer, id uint32) { _ = w.WriteRSTStream(id, http2.ErrCodeEnhanceYourCalm) }), func(err error) bool {
			var e *ResetError
			return errors.As(err, &e) && e.Code == http2.ErrCodeEnhanceYourCalm
		}},
		"goaway with its reason": {write(func(w *http2.Framer, id uint32) {
			_ = w.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
		}), func(err error) bool {
			var e *GoAwayError
			return errors.As(err, &e) && e.Debug == "too_many_pings" && errors.Is(err, ErrGoAway)
		}},
		"lost": {func(p *h2test.Peer, _ uint32) { p.Hang() }, func(err error) bool {
			var e *LostError
			return errors.As(err, &e)
		}},
		"truncated":  {write(func(w *http2.Framer, id uint32) { headers(w, id, h2test.Block(200, 5), true) }), is(ErrTruncated)},
		"no status":  {write(func(w *http2.Framer, id uint32) { headers(w, id, nil, true) }), protocol(http2.ErrCodeProtocol)},
		"data first": {write(func(w *http2.Framer, id uint32) { _ = w.WriteData(id, true, []byte("x")) }), protocol(http2.ErrCodeProtocol)},
		"pushed": {write(func(w *http2.Framer, id uint32) {
			_ = w.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, EndHeaders: true})
		}), protocol(http2.ErrCodeProtocol)},
		"a stream that never was": {write(func(w *http2.Framer, _ uint32) { _ = w.WriteData(99, true, []byte("x")) }), protocol(http2.ErrCodeProtocol)},
		"endless CONTINUATION": {write(func(w *http2.Framer, id uint32) {
			_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id})
			for range 1000 {
				_ = w.WriteContinuation(id, false, nil)
			}
		}), protocol(http2.ErrCodeEnhanceYourCalm)},
		"endless headers": {write(func(w *http2.Framer, id uint32) {
			_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id})
			for range 10 {
				_ = w.WriteContinuation(id, false, make([]byte, maxFrame))
			}
		}), protocol(http2.ErrCodeEnhanceYourCalm)},
		"more than the window": {write(func(w *http2.Framer, id uint32) {
			headers(w, id, h2test.Block(200, -1), false)
			for range 5 {
				_ = w.WriteData(id, false, make([]byte, maxFrame))
			}
		}), protocol(http2.ErrCodeFlowControl)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := h2test.Serve(t, h2test.Options{Answer: c.answer})
			conn := to(t, s, Options{StreamWindow: defaultWindow, Queued: true})
			h := collect()
			var stream Stream
			if err := conn.TryOpen(&stream, get, []byte("/"), nil, &holder{h, &stream}); err != nil {
				t.Fatal(err)
			}
			if err := h.wait(t); !c.want(err) {
				t.Errorf("the stream ended with %v", err)
			}
		})
	}
}

// If RFC 9113 allows the connection to continue after an error, only the affected stream ends.
func TestMalformedAnswerLeavesTheConnection(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: func(p *h2test.Peer, id uint32) {
		if id == 1 {
			p.Send(func(w *http2.Framer) { _ = w.WriteData(id, true, []byte("x")) })
			return
		}
		h2test.Respond(200, []byte("{}"))(p, id)
	}})
	c := to(t, s, Options{Queued: true})
	var e *ProtocolError
	if _, err := c.RoundTrip(t.Context(), &Request{Method: "GET", Path: "/"}); !errors.As(err, &e) || e.Stream != 1 {
		t.Errorf("RoundTrip: %v, want a ProtocolError of stream 1", err)
	}
	if r, err := c.RoundTrip(t.Context(), &Request{Method: "GET", Path: "/"}); err != nil || string(r.Body) != "{}" {
		t.Errorf("next RoundTrip: %v, %v", r, err)
	}
}

// Dial fails if the server's first frame is not SETTINGS, or if the server sends nothing.
func TestServerWithoutHTTP2(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Greet: func(p *h2test.Peer) { p.Send(func(w *http2.Framer) { _ = w.WritePing(false, [8]byte{}) }) }})
	var dial *DialError
	var e *ProtocolError
	if _, err := Dial(t.Context(), s.Addr(), Options{TLS: s.TLS()}); !errors.As(err, &dial) || !errors.As(err, &e) {
		t.Errorf("dialled: %v", err)
	}
}

func TestPingsAndSettingsAreAcknowledged(t *testing.T) {
	pongs, acks := make(chan [8]byte, 10), make(chan bool, 10)
	s := h2test.Serve(t, h2test.Options{
		Frame: func(_ *h2test.Peer, f http2.Frame) {
			switch f := f.(type) {
			case *http2.PingFrame:
				if f.IsAck() {
					pongs <- f.Data
				}
			case *http2.SettingsFrame:
				acks <- f.IsAck()
			}
		},
		Answer: func(p *h2test.Peer, id uint32) {
			p.Send(func(w *http2.Framer) { _ = w.WritePing(false, [8]byte{1, 2, 3}) })
		},
	})
	c := to(t, s, Options{})
	if err := c.TryOpen(&Stream{}, get, []byte("/"), nil, collect()); err != nil {
		t.Fatal(err)
	}
	if p := <-pongs; p != [8]byte{1, 2, 3} {
		t.Errorf("the client replied to PING with %v", p)
	}
	if first, second := <-acks, <-acks; first || !second {
		t.Error("the client does not acknowledge SETTINGS in order")
	}
}

// The client sends a PING to a silent server, and closes the connection if there is no reply.
func TestSilentServerIsPinged(t *testing.T) {
	pings := make(chan bool, 100)
	s := h2test.Serve(t, h2test.Options{Frame: func(p *h2test.Peer, f http2.Frame) {
		if f.Header().Type == http2.FramePing {
			pings <- true
		}
	}})
	c := to(t, s, Options{Queued: true, Ping: time.Millisecond})
	<-pings
	c.mu.Lock()
	c.pinged = time.Since(c.born) // as if the client had just sent the PING; the server does not reply
	c.mu.Unlock()
	c.alive()
	<-c.Done()
	if err := c.Err(); !errors.Is(err, errNoPong) {
		t.Errorf("the connection ended with %v, want errNoPong", err)
	}
}

// A server that sends frames that need replies, but never reads, does not exhaust the client's memory.
func TestFloodOfPingsEndsTheConnection(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: func(p *h2test.Peer, _ uint32) {
		for range 1_000_000 { // does not read meanwhile; ends with the connection
			failed := false
			p.Queue(func(w *http2.Framer) { failed = w.WritePing(false, [8]byte{}) != nil })
			if failed {
				return
			}
		}
	}})
	c := to(t, s, Options{Queued: true})
	h := collect()
	if err := c.TryOpen(&Stream{}, get, []byte("/"), nil, h); err != nil {
		t.Fatal(err)
	}
	var e *ProtocolError
	if err := h.wait(t); !errors.As(err, &e) || e.Code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("the stream ended with %v", err)
	}
}
