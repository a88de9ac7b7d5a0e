package h2conn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/stormglass/stormglass/loadgen/h2conn/h2test"
)

// to is a connection to a server that is made for the test.
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

// collector is a handler that keeps what it is told.
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

// holder holds its stream's window from the answer's headers on.
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
		t.Fatal("the stream does not end")
		return nil
	}
}

func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !met() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain for %s", what)
		}
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
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// Only the stream at fault ends where RFC 9113 lets the connection live.
func TestAMalformedAnswerLeavesTheConnection(t *testing.T) {
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
		t.Errorf("ended with %v", err)
	}
	if r, err := c.RoundTrip(t.Context(), &Request{Method: "GET", Path: "/"}); err != nil || string(r.Body) != "{}" {
		t.Errorf("then: %v, %v", r, err)
	}
}

// A first frame that is not SETTINGS, and a server that says nothing.
func TestAServerThatIsNone(t *testing.T) {
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
		t.Errorf("PING answered with %v", p)
	}
	if first, second := <-acks, <-acks; first || !second {
		t.Error("SETTINGS are not acknowledged")
	}
}

// A server that falls silent is asked, and given up without an answer.
func TestASilentServerIsAskedForASign(t *testing.T) {
	pings := make(chan bool, 100)
	s := h2test.Serve(t, h2test.Options{Frame: func(p *h2test.Peer, f http2.Frame) {
		if f.Header().Type == http2.FramePing {
			pings <- true
		}
	}})
	c := to(t, s, Options{Queued: true, Ping: time.Millisecond})
	<-pings
	c.mu.Lock()
	c.pinged = time.Since(c.born) // as if it had just been sent: nothing comes after
	c.mu.Unlock()
	c.alive()
	<-c.Done()
	if err := c.Err(); !errors.Is(err, errNoPong) {
		t.Errorf("ended with %v", err)
	}
}

// A server that asks and never reads does not fill our memory.
func TestAFloodOfPingsEndsTheConnection(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: func(p *h2test.Peer, _ uint32) {
		for range 1_000_000 { // never reads meanwhile; ends with the connection
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
		t.Errorf("ended with %v", err)
	}
}

// The body goes out as the windows allow, also after one went below zero, and
// nobody waits for it.
func TestBodyFollowsTheWindows(t *testing.T) {
	got := make(chan int, 100)
	var peer atomic.Pointer[h2test.Peer]
	s := h2test.Serve(t, h2test.Options{
		Settings: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 10}},
		Answer:   h2test.Respond(200, nil),
		Frame: func(p *h2test.Peer, f http2.Frame) {
			peer.Store(p)
			if f, ok := f.(*http2.DataFrame); ok {
				got <- len(f.Data())
			}
		},
	})
	c := to(t, s, Options{Queued: true})
	h := collect()
	body := bytes.Repeat([]byte("x"), 100)
	if err := c.TryOpen(&Stream{}, NewTemplate(Request{Method: "POST"}), []byte("/"), body, h); err != nil {
		t.Fatal(err)
	}
	clear(body) // ours again
	if n := <-got; n != 10 {
		t.Errorf("%d bytes in a window of 10", n)
	}
	p := peer.Load()
	p.Send(func(w *http2.Framer) {
		_ = w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 4}) // the window is -6
		_ = w.WriteWindowUpdate(1, 6)                                                  // 0
		_ = w.WriteWindowUpdate(1, 20)
	})
	if n := <-got; n != 20 {
		t.Errorf("%d bytes in a window of 20", n)
	}
	p.Send(func(w *http2.Framer) {
		_ = w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
	})
	if n := <-got; n != 70 {
		t.Errorf("%d bytes, want the other 70", n)
	}
	if err := h.wait(t); err != nil {
		t.Error(err)
	}
}

// A held stream gives back what its owner says.
func TestHeldWindow(t *testing.T) {
	updates := make(chan uint32, 100)
	s := h2test.Serve(t, h2test.Options{
		Frame: func(_ *h2test.Peer, f http2.Frame) {
			if f, ok := f.(*http2.WindowUpdateFrame); ok && f.StreamID != 0 {
				updates <- f.Increment
			}
		},
		Answer: func(p *h2test.Peer, id uint32) {
			p.Send(func(w *http2.Framer) {
				_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h2test.Block(200, -1), EndHeaders: true})
				_ = w.WriteData(id, false, make([]byte, 3000))
				_ = w.WriteData(id, false, make([]byte, 1000))
			})
		},
	})
	c := to(t, s, Options{Queued: true, StreamWindow: 4000})
	held, free := collect(), collect()
	var a, b Stream
	if err := c.TryOpen(&a, get, []byte("/"), nil, held); err != nil {
		t.Fatal(err)
	}
	a.HoldWindow()
	await(t, "the window's data", func() bool { return held.body.Load() == 4000 })
	if n := a.Release(1500); n != 1500 || <-updates != 1500 {
		t.Errorf("released %d", n)
	}
	if n := a.Release(10_000); n != 2500 || <-updates != 2500 {
		t.Errorf("released %d more, want the 2500 that had come", n)
	}
	if err := c.TryOpen(&b, get, []byte("/"), nil, free); err != nil {
		t.Fatal(err)
	}
	if n := <-updates; n < 2000 {
		t.Errorf("a stream that is not held gave back %d, want at least half the window at once", n)
	}
	if len(updates) != 0 {
		t.Error("more was given back")
	}
}

// End is called once, whoever is first, and the memory may be used again.
func TestCancelWithEndsOnce(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(200, []byte("{}"))})
	c := to(t, s, Options{Queued: true})
	mine := errors.New("mine")
	var stream Stream
	cancelled := 0
	for range 2000 {
		h := collect()
		for c.TryOpen(&stream, get, []byte("/"), nil, h) == ErrBusy {
		}
		if stream.CancelWith(mine) {
			cancelled++
			if err := h.wait(t); err != mine {
				t.Fatalf("ended with %v", err)
			}
		} else if err := h.wait(t); err != nil {
			t.Fatalf("ended with %v", err)
		}
		if h.ends.Load() != 1 {
			t.Fatal("ended twice")
		}
	}
	if cancelled == 0 {
		t.Error("none was cancelled in time")
	}
}

// Opening and reading whole answers leaves nothing for the garbage collector,
// but for what crypto/tls does.
func TestTryOpenDoesNotAllocate(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{})
	c := to(t, s, Options{Queued: true})
	path, body := []byte("/api/v1/namespaces/default/configmaps/x"), bytes.Repeat([]byte("x"), 500)
	put := NewTemplate(Request{Method: "PUT", ContentType: "application/json"})
	var stream Stream
	h := collect()
	open := func() {
		if err := c.TryOpen(&stream, put, path, body, h); err != nil {
			t.Fatal(err)
		}
		stream.Cancel()
		c.mu.Lock() // what the writer would have taken
		c.out = c.out[:0]
		c.mu.Unlock()
	}
	if n := testing.AllocsPerRun(1000, open); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

// What a template says is what the server reads, on each connection.
func TestTemplateCarriesEverything(t *testing.T) {
	addr, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintln(w, r.Method, r.URL, r.Host, r.ContentLength, string(body))
		_ = r.Header.Write(w)
	})
	long := strings.Repeat("x", 40_000) // in several frames
	template := NewTemplate(Request{
		Method: "PATCH", Accept: "text/y", ContentType: "text/z", UserAgent: "agent",
		Extra: http.Header{"Impersonate-Group": {"a", "b"}, "X-Long": {long}},
	})
	want := fmt.Sprintf("PATCH /a?b=c%%2Cd %s 5 hello\nAccept: text/y\r\nContent-Length: 5\r\nContent-Type: text/z\r\nImpersonate-Group: a\r\nImpersonate-Group: b\r\nUser-Agent: agent\r\nX-Long: %s\r\n", addr, long)
	for range 2 {
		c := mustDial(t, addr, config)
		for range 2 {
			w := &waiter{done: make(chan struct{})}
			if err := c.TryOpen(&Stream{}, template, []byte("/a?b=c%2Cd"), []byte("hello"), w); err != nil {
				t.Fatal(err)
			}
			if <-w.done; w.err != nil || string(w.response.Body) != want {
				t.Fatalf("%v: the server read\n%s", w.err, w.response.Body)
			}
		}
	}
}
