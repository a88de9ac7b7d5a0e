package request

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func headers(w *http2.Framer, id uint32, status, length int) {
	_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h2test.Block(status, length), EndHeaders: true})
}

// Every failure of a response has its outcome, and the load retries no request: the server receives each request once.
func TestOutcomesByKind(t *testing.T) {
	for name, c := range map[string]struct {
		want    string
		answer  func(p *h2test.Peer, id uint32)
		timeout time.Duration
		// ends means that the connection ends with the response, so that some requests are lost, perhaps before the
		// server has read them.
		ends bool
	}{
		"429": {want: "429", answer: h2test.Respond(429, []byte(`{"kind":"Status"}`))},
		"500": {want: "500", answer: h2test.Respond(500, nil)},
		"reset stream": {want: "reset", answer: func(p *h2test.Peer, id uint32) {
			p.Queue(func(w *http2.Framer) { _ = w.WriteRSTStream(id, http2.ErrCodeInternal) })
		}},
		"refused stream": {want: "reset", answer: func(p *h2test.Peer, id uint32) {
			p.Queue(func(w *http2.Framer) { _ = w.WriteRSTStream(id, http2.ErrCodeRefusedStream) })
		}},
		"reset within the body": {want: "reset", answer: func(p *h2test.Peer, id uint32) {
			p.Queue(func(w *http2.Framer) {
				headers(w, id, 200, 100)
				_ = w.WriteData(id, false, []byte("{"))
				_ = w.WriteRSTStream(id, http2.ErrCodeInternal)
			})
		}},
		"lost connection": {want: "reset", ends: true, answer: func(p *h2test.Peer, id uint32) { p.Hang() }},
		"goaway": {want: "goaway", ends: true, answer: func(p *h2test.Peer, id uint32) {
			p.Send(func(w *http2.Framer) { _ = w.WriteGoAway(id-1, http2.ErrCodeNo, nil) })
			p.Hang()
		}},
		"truncated": {want: "truncated", answer: func(p *h2test.Peer, id uint32) {
			p.Queue(func(w *http2.Framer) {
				headers(w, id, 200, 100)
				_ = w.WriteData(id, true, []byte("{"))
			})
		}},
		"invalid JSON": {want: "malformed", answer: h2test.Respond(200, []byte("{]"))},
		"silence":      {want: "timeout", timeout: 50 * time.Millisecond, answer: func(*h2test.Peer, uint32) {}},
		"silence within the body": {want: "timeout", timeout: 50 * time.Millisecond, answer: func(p *h2test.Peer, id uint32) {
			p.Queue(func(w *http2.Framer) {
				headers(w, id, 200, 100)
				_ = w.WriteData(id, false, []byte("{"))
			})
		}},
		"endless headers": {want: "protocol", ends: true, answer: func(p *h2test.Peer, id uint32) {
			p.Send(func(w *http2.Framer) {
				_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h2test.Block(200, -1)})
				for range 1000 {
					_ = w.WriteContinuation(id, false, h2test.Block(200, -1)[1:])
				}
			})
		}},
		"more than content-length": {want: "protocol", answer: func(p *h2test.Peer, id uint32) {
			p.Queue(func(w *http2.Framer) {
				headers(w, id, 200, 1)
				_ = w.WriteData(id, true, []byte("{}"))
			})
		}},
		"a broken frame": {want: "protocol", ends: true, answer: func(p *h2test.Peer, id uint32) {
			p.Send(func(w *http2.Framer) { _ = w.WriteRawFrame(http2.FramePing, 0, 0, []byte("short")) })
		}},
		"a frame too large": {want: "protocol", ends: true, answer: func(p *h2test.Peer, id uint32) {
			p.Send(func(w *http2.Framer) { _ = w.WriteRawFrame(http2.FrameData, 0, id, make([]byte, 1<<20)) })
		}},
		"headers that cannot be decoded": {want: "protocol", ends: true, answer: func(p *h2test.Peer, id uint32) {
			p.Send(func(w *http2.Framer) {
				_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
			})
		}},
		"window overflow": {want: "protocol", ends: true, answer: func(p *h2test.Peer, id uint32) {
			p.Send(func(w *http2.Framer) {
				_ = w.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, 1<<31-1))
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := h2test.Serve(t, h2test.Options{Answer: c.answer})
			r := newLoad(t, target(s), schedule{40, time.Millisecond}, func(op *gets, l *scenario.Load) {
				if c.timeout > 0 {
					l.Timeout = scenario.Duration(c.timeout)
				}
				op.data = func(status int, p []byte) error {
					if bytes.Contains(p, []byte("]")) {
						return errors.New("no JSON")
					}
					return nil
				}
			})
			got := all(t, r, 40)
			other := got.Sent - got.Outcomes[c.want]
			if c.ends && c.want != "reset" {
				other -= got.Outcomes["reset"]
			}
			if got.Outcomes[c.want] == 0 || other != 0 || got.Sent != 40 {
				t.Errorf("outcomes %v, want 40 of %q", got.Outcomes, c.want)
			}
			if asked := s.Asked.Load(); asked > got.Sent || asked < got.Sent && !c.ends && c.timeout == 0 {
				t.Errorf("the server received %d requests, want %d", asked, got.Sent)
			}
		})
	}
}

func TestConnectionRefused(t *testing.T) {
	to := load.Target{Config: &rest.Config{Host: "https://127.0.0.1:1"}}
	got := all(t, newLoad(t, to, schedule{40, time.Millisecond}, nil), 40)
	if got.Outcomes["refused"] != 40 {
		t.Errorf("outcomes %v, want 40 refused", got.Outcomes)
	}
	if err := newLoad(t, to, schedule{}, nil).Prepare(t.Context()); err == nil {
		t.Error("Prepare returns no error")
	}
}

// A server that accepts connections and sends nothing, not even its TLS handshake.
func TestSilentServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	to := load.Target{Config: &rest.Config{Host: "https://" + listener.Addr().String()}}
	got := all(t, newLoad(t, to, schedule{40, time.Millisecond}, func(_ *gets, l *scenario.Load) {
		l.Timeout = scenario.Duration(50 * time.Millisecond)
	}), 40)
	if got.Outcomes["timeout"] != 40 {
		t.Errorf("outcomes %v, want 40 timeouts", got.Outcomes)
	}
}
