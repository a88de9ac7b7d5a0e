package request

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/net/http2"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// held is a server that responds when the test allows it.
type held struct {
	*h2test.Server
	asked chan func() // responds to a request
}

func hold(t *testing.T, settings ...http2.Setting) *held {
	h := &held{asked: make(chan func(), 1000)}
	h.Server = h2test.Serve(t, h2test.Options{Settings: settings, Answer: func(p *h2test.Peer, id uint32) {
		h.asked <- func() {
			p.Send(func(w *http2.Framer) {
				headers(w, id, 200, 2)
				_ = w.WriteData(id, true, []byte("{}"))
			})
		}
	}})
	return h
}

func TestEveryArrivalIsSentAndCounted(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{
		Answer: h2test.Respond(200, []byte("{}")), Settings: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 1000}},
	})
	to := target(s)
	registry := prometheus.NewRegistry()
	to.Registerer = registry
	r := newLoad(t, to, schedule{500, 200 * time.Microsecond}, func(_ *gets, l *scenario.Load) { l.Connections = 3 })
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := all(t, r, 500)
	if got.Outcomes["200"] != 500 || got.Succeeded != 500 || got.Bytes != 1000 || s.Asked.Load() != 500 || s.Connections.Load() != 3 {
		t.Errorf("results %+v of %d requests over %d connections; want 500 of 2 bytes each over 3", got, s.Asked.Load(), s.Connections.Load())
	}
	if got.Load != "test" || got.Verb != "get" || got.Resource != "configmaps" {
		t.Errorf("named %q %q %q", got.Load, got.Verb, got.Resource)
	}
	if n, err := testutil.GatherAndCount(registry, "stormglass_requests_total", "stormglass_requests_unsent_total", "stormglass_request_seconds", "stormglass_request_lag_seconds"); err != nil || n != 4 {
		t.Errorf("%d metrics, %v; want 4", n, err)
	}
	if live := r.Live(); live.P99 <= 0 {
		t.Errorf("live: %+v", live)
	}
}

// With a silent server, no more than maxInFlight requests are open, and all further arrivals are unsent.
func TestMaxInFlightIsExact(t *testing.T) {
	s := hold(t)
	r := newLoad(t, target(s.Server), schedule{50, time.Millisecond}, func(_ *gets, l *scenario.Load) { l.MaxInFlight = 7 })
	stop := start(t, r)
	h2test.Await(t, "43 unsent", func() bool { return one(r).Unsent == 43 })
	for range 7 {
		(<-s.asked)()
	}
	h2test.Await(t, "the answers", func() bool { return one(r).Succeeded == 7 })
	if got := stop(); got.Offered != 50 || got.Sent != 7 || s.Asked.Load() != 7 {
		t.Errorf("offered %d, sent %d, received %d; want 50, 7, 7", got.Offered, got.Sent, s.Asked.Load())
	}
}

func TestRequestsInFlightRunToTheirEnd(t *testing.T) {
	s := hold(t)
	r := newLoad(t, target(s.Server), schedule{1, 0}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Run(ctx)
	}()
	answer := <-s.asked
	cancel()
	h2test.Await(t, "the end of the dispatching", r.engine.ended.Load)
	select {
	case <-ended:
		t.Fatal("Run ended with a request in flight")
	default:
	}
	answer()
	<-ended
	if got := one(r); got.Succeeded != 1 {
		t.Errorf("%+v, want the request answered", got)
	}
}

// Arrivals that were due while the dispatcher was delayed count as offered and unsent.
func TestLateDispatcherAccountsForArrivals(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(200, nil)})
	ctx, cancel := context.WithCancel(t.Context())
	var r *Requests
	r = newLoad(t, target(s), schedule{1_000_000, time.Microsecond}, func(op *gets, _ *scenario.Load) {
		op.next = func(n int64, _ *Request) bool {
			if n == 10 { // this arrival is due at 10 us; after the wait, 100,000 arrivals are due
				<-time.After(100 * time.Millisecond)
				cancel()
				h2test.Await(t, "the end", r.engine.ended.Load)
			}
			return true
		}
	})
	_ = r.Run(ctx)
	got := one(r)
	addUp(t, got)
	if got.Offered < 100_000 || got.Sent != 11 {
		t.Errorf("%d offered, %d sent; want all that were due in 100 ms, 11 of them sent", got.Offered, got.Sent)
	}
}

func TestArrivalBelongsToThePhaseOfItsIntendedStart(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(200, nil)})
	var r *Requests
	r = newLoad(t, target(s), schedule{10, 10 * time.Millisecond}, func(op *gets, _ *scenario.Load) {
		op.next = func(n int64, _ *Request) bool {
			if n == 0 {
				r.BeginPhase("later", r.engine.start.Add(45*time.Millisecond))
			}
			return true
		}
	})
	stop := start(t, r)
	h2test.Await(t, "all", func() bool { return s.Asked.Load() == 10 })
	stop()
	later := r.Results()["later"]
	if got := one(r); got.Offered != 5 || len(later) != 1 || later[0].Offered != 5 {
		t.Errorf("%d in the first phase and %+v in the second, want 5 each", got.Offered, later)
	}
}

// An arrival for which the operation has no request is unsent.
func TestNothingToWorkOnIsUnsent(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(200, nil)})
	r := newLoad(t, target(s), schedule{20, 0}, func(op *gets, _ *scenario.Load) {
		op.next = func(n int64, _ *Request) bool { return n%2 == 0 }
	})
	if got := all(t, r, 20); got.Sent != 10 || got.Unsent != 10 {
		t.Errorf("sent %d, unsent %d; want 10 and 10", got.Sent, got.Unsent)
	}
}

// With one stream per connection, simultaneous arrivals open further connections, and their waits count as connect time.
func TestExhaustedStreamsOpenConnection(t *testing.T) {
	s := hold(t, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	r := newLoad(t, target(s.Server), schedule{3, 0}, nil)
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := start(t, r)
	var asked []func()
	for range 3 {
		asked = append(asked, <-s.asked)
	}
	for _, answer := range asked {
		answer()
	}
	if got := stop(); got.Succeeded != 3 || got.Connect.Max <= 0 || s.Connections.Load() != 3 {
		t.Errorf("%+v over %d connections, want 3 over 3", got, s.Connections.Load())
	}
}

// The server first allows no stream, and later allows some.
func TestArrivalsWaitForAStream(t *testing.T) {
	var p atomic.Pointer[h2test.Peer]
	s := h2test.Serve(t, h2test.Options{
		Answer: h2test.Respond(200, nil),
		Greet: func(peer *h2test.Peer) {
			peer.Send(func(w *http2.Framer) {
				_ = w.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
			})
			p.Store(peer)
		},
	})
	r := newLoad(t, target(s), schedule{5, 0}, nil)
	stop := start(t, r)
	h2test.Await(t, "arrivals", func() bool { return one(r).Offered == 5 && p.Load() != nil })
	if s.Asked.Load() != 0 {
		t.Error("the client sends requests although the server allows no streams")
	}
	p.Load().Send(func(w *http2.Framer) {
		_ = w.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 2})
	})
	h2test.Await(t, "answers", func() bool { return one(r).Succeeded == 5 })
	if got := stop(); got.Connect.Max <= 0 {
		t.Errorf("the wait does not show: %+v", got.Connect)
	}
}

// Pages are requests of one arrival, and continue after the end of the run.
func TestPages(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(200, []byte("{}"))})
	var ctx, cancel = context.WithCancel(t.Context())
	r := newLoad(t, target(s), schedule{20, 0}, func(op *gets, _ *scenario.Load) {
		op.done = func(r *Request, o load.Outcome) bool {
			if o != 200 {
				t.Errorf("a page ended with %v", o)
			}
			r.Key++
			if r.Key == 2 {
				cancel()
			}
			return r.Key < 3
		}
	})
	_ = r.Run(ctx)
	got := one(r)
	if got.Sent != 20 || got.Pages != 60 || s.Asked.Load() != 60 || got.Bytes != 120 || got.Succeeded != 20 {
		t.Errorf("results %+v, received %d; want 20 arrivals of 3 pages", got, s.Asked.Load())
	}
}

// A GOAWAY loses no request: accepted streams complete, and later requests use another connection. No request is sent twice.
func TestGoAwayChangesTheConnection(t *testing.T) {
	var n atomic.Int64
	s := h2test.Serve(t, h2test.Options{Answer: func(p *h2test.Peer, id uint32) {
		if n.Add(1)%10 == 0 {
			p.Queue(func(w *http2.Framer) { _ = w.WriteGoAway(id, http2.ErrCodeNo, nil) })
		}
		h2test.Respond(200, nil)(p, id)
	}})
	r := newLoad(t, target(s), schedule{200, time.Millisecond}, nil)
	got := all(t, r, 200)
	if got.Outcomes["200"]+got.Outcomes["goaway"] != 200 || got.Outcomes["200"] < 10 || s.Connections.Load() < 2 || s.Asked.Load() > 200 {
		t.Errorf("outcomes %v over %d connections, received %d", got.Outcomes, s.Connections.Load(), s.Asked.Load())
	}
}

func TestLostConnectionIsReplaced(t *testing.T) {
	s := hold(t)
	r := newLoad(t, target(s.Server), schedule{1_000_000, 10 * time.Millisecond}, func(_ *gets, l *scenario.Load) { l.Connections = 2 })
	stop := start(t, r)
	<-s.asked
	s.Drop()
	h2test.Await(t, "a reset", func() bool { return one(r).Outcomes["reset"] > 0 })
	h2test.Await(t, "an answer", func() bool {
		select {
		case answer := <-s.asked:
			answer()
		default:
		}
		return one(r).Succeeded > 0
	})
	go func() {
		for answer := range s.asked {
			answer()
		}
	}()
	got := stop()
	close(s.asked)
	if got.Outcomes["200"]+got.Outcomes["reset"] != got.Sent {
		t.Errorf("outcomes %v", got.Outcomes)
	}
}

// A run without arrivals ends when it is stopped.
func TestEndWakesASleepingDispatcher(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{})
	if got := start(t, newLoad(t, target(s), schedule{}, nil))(); got.Offered != 0 {
		t.Errorf("got %+v without any request", got)
	}
}

func TestImpossibleLoadsAreRefused(t *testing.T) {
	to := target(h2test.Serve(t, h2test.Options{}))
	for name, l := range map[string]scenario.Load{
		"no slots":   {Name: "test", Timeout: scenario.Duration(time.Second)},
		"no timeout": {Name: "test", MaxInFlight: 1},
	} {
		if _, err := New(to, l, newGets(to), schedule{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	to.Config.Host = "http://127.0.0.1:1"
	if _, err := New(to, scenario.Load{Name: "test", MaxInFlight: 1, Timeout: 1}, newGets(to), schedule{}); err == nil {
		t.Error("without TLS: accepted")
	}
}
