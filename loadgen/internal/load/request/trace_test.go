package request

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// parents collects the header traceparent of each request; "" for a request without the header.
type parents struct {
	mu  sync.Mutex
	all []string
}

func (p *parents) frame(_ *h2test.Peer, f http2.Frame) {
	h, ok := f.(*http2.HeadersFrame)
	if !ok {
		return
	}
	parent, audit := "", ""
	d := hpack.NewDecoder(0, func(f hpack.HeaderField) {
		switch f.Name {
		case "traceparent":
			parent += f.Value
		case "audit-id":
			audit += f.Value
		}
	})
	_, _ = d.Write(h.HeaderBlockFragment()) // the client uses no dynamic table
	if sampled := strings.HasSuffix(parent, "-01"); sampled != (audit != "") || sampled && audit != parent[3:35] {
		parent = "with the Audit-ID " + audit
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, parent)
}

// count returns how often each value occurs.
func (p *parents) count() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[string]int{}
	for _, v := range p.all {
		n[v]++
	}
	return n
}

// traced returns a target that traces a share of the requests, and keeps up to 1000 of them.
func traced(s *h2test.Server, share float64) load.Target {
	to := target(s)
	to.Tracer = spans.NewTracer(spans.Limits{Sample: 1000}, share, 1)
	return to
}

// inOrder reports the times of a request that are not in order.
func inOrder(t *testing.T, r *spans.Request) {
	t.Helper()
	if r.Due <= 0 || r.Sent < r.Due || r.First != 0 && r.First < r.Sent || r.Last < max(r.Sent, r.First) {
		t.Errorf("due %d, sent %d, first byte %d, last byte %d are not in order", r.Due, r.Sent, r.First, r.Last)
	}
}

// The header traceparent tells the server which requests are sampled, also if the engine reads responses late.
func TestSampledRequestsCarryTheirTrace(t *testing.T) {
	for name, newLoad := range map[string]func(load.Target, schedule) *Requests{
		"read immediately": func(to load.Target, p schedule) *Requests { return newLoad(t, to, p, nil) },
		"read late":        func(to load.Target, p schedule) *Requests { return newDeferred(t, to, p, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			var got parents
			s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(200, []byte("{}")), Frame: got.frame})
			to := traced(s, 0.5)
			r := newLoad(to, schedule{400, 100 * time.Microsecond})
			all(t, r, 400)
			to.Tracer.Flush()
			kept, counts := to.Tracer.Kept()
			parents := got.count()
			if n := parents[spans.Unsampled]; counts.Requests != int64(400-n) || len(kept) != 400-n || n < 100 || n > 300 { // 200 expected; 10 standard deviations
				t.Errorf("%d of 400 requests have no trace, %d are counted, %d kept", n, counts.Requests, len(kept))
			}
			for i := range kept {
				k := &kept[i].Request
				inOrder(t, k)
				if n := parents[spans.Parent(k.Trace, k.ID)]; n != 1 {
					t.Errorf("the server received trace %s %d times", k.Trace, n)
				}
				if k.Load != "test" || k.Verb != "get" || k.Resource != "configmaps" || k.Status != 200 || k.First == 0 || k.Failed() {
					t.Errorf("%+v", k)
				}
			}
		})
	}
}

func TestFailuresAreTraced(t *testing.T) {
	for name, c := range map[string]struct {
		answer  func(p *h2test.Peer, id uint32) // nil: no server
		timeout time.Duration
		status  int
		failure string
	}{
		"500":     {h2test.Respond(500, nil), patience, 500, ""},
		"refused": {nil, patience, 0, "refused"},
		"silence": {func(*h2test.Peer, uint32) {}, 50 * time.Millisecond, 0, "timeout"},
		"reset stream": {func(p *h2test.Peer, id uint32) {
			p.Queue(func(w *http2.Framer) { _ = w.WriteRSTStream(id, http2.ErrCodeInternal) })
		}, patience, 0, "reset"},
		"truncated": {func(p *h2test.Peer, id uint32) {
			p.Queue(func(w *http2.Framer) {
				headers(w, id, 200, 100)
				_ = w.WriteData(id, true, []byte("{"))
			})
		}, patience, 200, "truncated"},
		"silence within the body": {func(p *h2test.Peer, id uint32) {
			p.Queue(func(w *http2.Framer) {
				headers(w, id, 200, 100)
				_ = w.WriteData(id, false, []byte("{"))
			})
		}, 50 * time.Millisecond, 200, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := traced(h2test.Serve(t, h2test.Options{Answer: c.answer}), 1)
			if c.answer == nil {
				to.Config = &rest.Config{Host: "https://127.0.0.1:1"}
			}
			all(t, newLoad(t, to, schedule{20, time.Millisecond}, func(_ *gets, l *scenario.Load) { l.Timeout = scenario.Duration(c.timeout) }), 20)
			to.Tracer.Flush()
			kept, _ := to.Tracer.Kept()
			if len(kept) != 20 {
				t.Errorf("%d traces, want 20", len(kept))
			}
			for i := range kept {
				k := &kept[i].Request
				inOrder(t, k)
				if !k.Failed() || k.Status != c.status && k.Status != 0 || k.Failure != c.failure || c.status == 0 && k.First != 0 {
					t.Errorf("status %d, failure %q, first byte %d; want %d, %q", k.Status, k.Failure, k.First, c.status, c.failure)
				}
			}
		})
	}
}

// The pages of a list are one traced request. Its first byte belongs to the first page, its last byte to the last.
func TestPagesAreOneTrace(t *testing.T) {
	s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(200, []byte("{}"))})
	to := traced(s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var ends []int64
	r := newLoad(t, to, schedule{1, 0}, func(op *gets, _ *scenario.Load) {
		op.done = func(*Request, load.Outcome) bool {
			if ends = append(ends, time.Now().UnixNano()); len(ends) == 3 {
				cancel()
			}
			return len(ends) < 3
		}
	})
	_ = r.Run(ctx)
	to.Tracer.Flush()
	kept, counts := to.Tracer.Kept()
	if len(kept) != 1 || counts.Requests != 1 || len(ends) != 3 {
		t.Fatalf("%d traces, counts %+v, %d pages; want 1 of 3 pages", len(kept), counts, len(ends))
	}
	inOrder(t, &kept[0].Request)
	if k := kept[0]; k.First > ends[0] || k.Last < ends[1] {
		t.Errorf("first byte %d, last byte %d; the pages ended at %v", k.First, k.Last, ends)
	}
}

// A load without a tracer sends no traces.
func TestNothingIsTracedWithoutTracer(t *testing.T) {
	var got parents
	s := h2test.Serve(t, h2test.Options{Answer: h2test.Respond(200, nil), Frame: got.frame})
	all(t, newLoad(t, target(s), schedule{20, 0}, nil), 20)
	if n := got.count(); n[""] != 20 {
		t.Errorf("headers traceparent: %v, want none in 20 requests", n)
	}
}
