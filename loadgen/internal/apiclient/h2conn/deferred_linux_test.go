package h2conn

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"golang.org/x/net/http2"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
)

func deferred(t *testing.T, o h2test.Options) *Conn {
	t.Helper()
	c := to(t, h2test.Serve(t, o), Options{Deferred: true, StampArrivals: true, Queued: true, ReadBuffer: 64 << 10})
	if c.deferred == nil {
		t.Fatal("the connection is not deferred")
	}
	return c
}

func opened(t *testing.T, c *Conn) *collector {
	t.Helper()
	h := collect()
	if err := c.TryOpen(&Stream{}, get, []byte("/"), nil, h); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestDeferredAnswerWaitsForReceive(t *testing.T) {
	c := deferred(t, h2test.Options{Answer: h2test.Respond(200, make([]byte, 1000))})
	for range 3 {
		h := opened(t, c)
		h2test.Await(t, "the answer", func() bool { return c.Backlog() > 1000 })
		if h.ends.Load() != 0 {
			t.Fatal("the connection read the response before Receive")
		}
		c.Receive()
		if err := h.wait(t); err != nil || h.status != 200 || h.body.Load() != 1000 {
			t.Errorf("status %d, %d bytes, %v", h.status, h.body.Load(), err)
		}
	}
	c.Receive() // nothing
}

// When a deferred connection ends, the handlers of its streams are called, whether Receive or Close detects the end.
func TestDeferredConnectionEnds(t *testing.T) {
	for _, closed := range []bool{false, true} {
		c := deferred(t, h2test.Options{Answer: func(p *h2test.Peer, _ uint32) {
			if !closed {
				p.Hang()
			}
		}})
		h := opened(t, c)
		if closed {
			c.Close()
		}
		h2test.Await(t, "the end", func() bool {
			if !closed {
				c.Receive()
			}
			return h.ends.Load() == 1
		})
		if lost := new(LostError); closed && !errors.Is(h.err, ErrClosed) || !closed && !errors.As(h.err, &lost) {
			t.Errorf("closed %t: the stream ended with %v", closed, h.err)
		}
		<-c.Done()
		c.Receive()
		if h.ends.Load() != 1 {
			t.Error("the handler received the end more than once")
		}
	}
}

// halting is a reader that returns one byte at a time, and errNothing in between.
type halting struct {
	text  []byte
	ready bool
}

func (h *halting) Read(p []byte) (int, error) {
	if h.ready = !h.ready; h.ready {
		return 0, errNothing
	}
	if len(h.text) == 0 {
		return 0, io.EOF
	}
	p[0] = h.text[0]
	h.text = h.text[1:]
	return 1, nil
}

// The reader continues an incomplete frame where it stopped.
func TestFramesInPieces(t *testing.T) {
	var text bytes.Buffer
	w := http2.NewFramer(&text, nil)
	w.AllowIllegalWrites = true
	_ = w.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 7})
	_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("head")})
	_ = w.WriteContinuation(1, true, []byte("ers"))
	_ = w.WriteDataPadded(1, false, []byte("padded"), make([]byte, 3))
	_ = w.WriteData(1, true, []byte("data"))
	_ = w.WritePing(false, [8]byte{1, 2, 3})
	f := newFrameReader(&halting{text: text.Bytes()}, smallBuffer)
	var got []http2.FrameType
	var payloads bytes.Buffer
	for {
		fr, err := f.next()
		if err == errNothing {
			continue
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if fr.kind != http2.FrameSettings {
			payloads.Write(fr.payload)
		}
		if fr.last {
			got = append(got, fr.kind)
		}
	}
	want := []http2.FrameType{http2.FrameSettings, http2.FrameHeaders, http2.FrameContinuation, http2.FrameData, http2.FrameData, http2.FramePing}
	if len(got) != len(want) {
		t.Fatalf("read %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("frame %d is %v, want %v", i, got[i], want[i])
		}
	}
	if text := payloads.String(); text != "headerspaddeddata\x01\x02\x03\x00\x00\x00\x00\x00" {
		t.Errorf("payloads %q", text)
	}
}
