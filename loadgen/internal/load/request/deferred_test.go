package request

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// unhurried is an operation of gets whose responses may be read late.
type unhurried struct{ *gets }

func (unhurried) Unhurried() {}

// newDeferred returns a prepared load whose responses the dispatcher reads, if the platform supports that.
func newDeferred(t *testing.T, to load.Target, p arrival.Pacer, change func(*scenario.Load)) *Requests {
	t.Helper()
	l := scenario.Load{Name: "test", Rate: 100, MaxInFlight: 1000, Timeout: scenario.Duration(patience), Connections: 2}
	if change != nil {
		change(&l)
	}
	r, err := New(to, l, unhurried{newGets(to)}, p)
	if err != nil {
		t.Fatal(err)
	}
	if !r.engine.deferred {
		t.Fatal("the load does not defer responses")
	}
	r.BeginPhase("storm", time.Now())
	return r
}

func TestDeferredAnswersAreAllCounted(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(200, []byte("{}"))})
	r := newDeferred(t, target(s), schedule{100, time.Millisecond}, nil)
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := all(t, r, 100); got.Outcomes["200"] != 100 || got.Bytes != 200 || s.Connections.Load() != 2 {
		t.Errorf("%+v over %d connections; want 100 answers of 2 bytes each over 2", got, s.Connections.Load())
	}
}

// The load ends with its last response, although no further arrival wakes the dispatcher.
func TestDeferredLoadIsOverWithItsLastAnswer(t *testing.T) {
	s := hold(t)
	r := newDeferred(t, target(s.Server), schedule{3, 0}, nil)
	stop := start(t, r)
	for range 3 {
		answer := <-s.asked
		select {
		case <-r.Over():
			t.Fatal("Over is closed while requests are in flight")
		default:
		}
		answer()
	}
	<-r.Over()
	if got := stop(); got.Succeeded != 3 {
		t.Errorf("%+v", got)
	}
}

// A load notices failures of deferred connections like other failures.
func TestDeferredFailures(t *testing.T) {
	for name, c := range map[string]struct {
		answer  func(*h2test.Peer, uint32)
		timeout time.Duration
		want    string
	}{
		"the connection is lost": {func(p *h2test.Peer, _ uint32) { p.Hang() }, patience, "reset"},
		"the stream is reset": {func(p *h2test.Peer, id uint32) {
			p.Send(func(w *http2.Framer) { _ = w.WriteRSTStream(id, http2.ErrCodeInternal) })
		}, patience, "reset"},
		"the server goes away": {func(p *h2test.Peer, _ uint32) {
			p.Send(func(w *http2.Framer) { _ = w.WriteGoAway(0, http2.ErrCodeNo, nil) })
		}, patience, "goaway"},
		"no answer": {func(*h2test.Peer, uint32) {}, 50 * time.Millisecond, "timeout"},
	} {
		s := h2test.Serve(t, h2test.Options{Answer: c.answer})
		r := newDeferred(t, target(s), schedule{4, 10 * time.Millisecond}, func(l *scenario.Load) { l.Timeout = scenario.Duration(c.timeout) })
		if got := all(t, r, 4); got.Outcomes[c.want] != 4 {
			t.Errorf("%s: %v, want %s", name, got.Outcomes, c.want)
		}
	}
}

func TestDeferredEnd(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct{ end, waited, sent, at, stalled time.Duration }{
		"read at once":                 {100 * ms, 0, 90 * ms, 100 * ms, 0},
		"read with the next arrival":   {100 * ms, 3 * ms, 90 * ms, 97 * ms, 0},
		"the generator was stopped":    {100 * ms, 65 * ms, 10 * ms, 95 * ms, 60 * ms},
		"a clock that was set forward": {100 * ms, 3600 * time.Second, 98 * ms, 98 * ms, 3600*time.Second - 5*ms},
	} {
		if at, stalled := deferredEnd(c.end, c.waited, c.sent); at != c.at || stalled != c.stalled {
			t.Errorf("%s: ended at %v with a stall of %v, want %v and %v", name, at, stalled, c.at, c.stalled)
		}
	}
}

func TestWhichAnswersAreDeferred(t *testing.T) {
	quiet := scenario.Load{Rate: 300}
	for name, c := range map[string]struct {
		l           scenario.Load
		op          Operation
		connections int
		want        bool
	}{
		"a steady rate":            {quiet, unhurried{}, 4, true},
		"pages that follow":        {quiet, &gets{}, 4, false},
		"answers close together":   {scenario.Load{Rate: 2000}, unhurried{}, 4, false},
		"a rate that grows":        {scenario.Load{Rate: 300, Shape: scenario.Shape{Kind: "ramp"}}, unhurried{}, 4, false},
		"connections by the dozen": {quiet, unhurried{}, 24, false},
	} {
		if got := defersAnswers(c.l, c.op, c.connections); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// BenchmarkDeferredAnswers offers 300 requests per second to a server that responds in two pieces, like an API server,
// and reports the client's CPU time for each.
func BenchmarkDeferredAnswers(b *testing.B) {
	for _, deferred := range []bool{false, true} {
		b.Run(fmt.Sprintf("deferred=%t", deferred), func(b *testing.B) {
			to := remote(b, "pieces")
			to.Registerer = prometheus.NewRegistry()
			var op Operation = newGets(to)
			if deferred {
				op = unhurried{newGets(to)}
			}
			measure(b, to, op, 300, 3000)
		})
	}
}

// inPieces responds with headers and, a moment later, the body.
func inPieces(body int) func(*h2test.Peer, uint32) {
	block, text := h2test.Block(200, body), bytes.Repeat([]byte("x"), body)
	return func(p *h2test.Peer, id uint32) {
		go func() { // as a handler does
			p.Send(func(w *http2.Framer) {
				_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
			})
			p.Send(func(w *http2.Framer) { _ = w.WriteData(id, true, text) })
		}()
	}
}
