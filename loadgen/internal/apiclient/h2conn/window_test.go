package h2conn

import (
	"bytes"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
)

// A connection sends a body as the windows allow, even after a window became negative, and without a waiting goroutine.
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
	clear(body) // the caller may modify it again
	if n := <-got; n != 10 {
		t.Errorf("got %d bytes, want 10", n)
	}
	p := peer.Load()
	p.Send(func(w *http2.Framer) {
		_ = w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 4}) // the window is -6
		_ = w.WriteWindowUpdate(1, 6)                                                  // the window is 0
		_ = w.WriteWindowUpdate(1, 20)
	})
	if n := <-got; n != 20 {
		t.Errorf("got %d bytes, want 20", n)
	}
	p.Send(func(w *http2.Framer) {
		_ = w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
	})
	if n := <-got; n != 70 {
		t.Errorf("got %d bytes, want the remaining 70", n)
	}
	if err := h.wait(t); err != nil {
		t.Error(err)
	}
}

// A held stream returns only as much of its window as Release requests.
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
	if err := c.TryOpen(&a, get, []byte("/"), nil, &holder{held, &a}); err != nil {
		t.Fatal(err)
	}
	h2test.Await(t, "the window's data", func() bool { return held.body.Load() == 4000 })
	if n := a.Release(1500); n != 1500 || <-updates != 1500 {
		t.Errorf("Release returned %d", n)
	}
	if n := a.Release(10_000); n != 2500 || <-updates != 2500 {
		t.Errorf("the second Release returned %d, want the 2500 bytes received", n)
	}
	if err := c.TryOpen(&b, get, []byte("/"), nil, free); err != nil {
		t.Fatal(err)
	}
	if n := <-updates; n < 2000 {
		t.Errorf("a stream that is not held returned %d bytes, want at least half of the window at once", n)
	}
	if len(updates) != 0 {
		t.Error("the connection returned more of the windows")
	}
}
