package spans

import (
	crand "crypto/rand"
	"math/rand/v2"
	"sync"
	"time"
)

// Tracer samples the requests of a run's loads, and joins them with the spans of the components. It is safe for
// concurrent use. A nil *Tracer samples nothing.
type Tracer struct {
	mu     sync.Mutex
	share  float64
	random *rand.Rand
	keeper *Keeper
}

// NewTracer returns a Tracer that samples a share of the requests, from 0 to 1, at random. The seed determines the
// choice, but not the IDs of the traces: they must differ between runs, because a collector may store several runs.
func NewTracer(l Limits, share float64, seed uint64) *Tracer {
	return &Tracer{share: share, random: rand.New(rand.NewPCG(seed, 0x7370616e)), keeper: NewKeeper(l, seed)}
}

// Sample decides whether to trace the next request. If sampled is true, the caller sends Parent(trace, id) as the header
// traceparent, and calls Ended when the request has ended.
func (t *Tracer) Sample() (trace TraceID, id ID, sampled bool) {
	if t == nil {
		return trace, id, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.random.Float64() >= t.share {
		return trace, id, false
	}
	if t.keeper.nearlyFull() { // another trace could make the Keeper drop spans
		t.keeper.counts.Skipped++
		return trace, id, false
	}
	_, _ = crand.Read(trace[:]) // cannot fail
	_, _ = crand.Read(id[:])
	return trace, id, true
}

// Parent returns the value of the header traceparent for a sampled request (W3C Trace Context, version 00).
func Parent(trace TraceID, id ID) string { return "00-" + trace.String() + "-" + id.String() + "-01" }

// Unsampled is the value of the header traceparent for requests that are not sampled. It also keeps an API server that
// trusts the client from tracing these requests by its own sampling rate.
const Unsampled = "00-00000000000000000000000000000001-0000000000000001-00"

// unsampled is the ID of the trace in Unsampled.
var unsampled = TraceID{15: 1}

// BeginPhase begins a phase. A request belongs to the phase in which it was due.
func (t *Tracer) BeginPhase(name string, at time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keeper.BeginPhase(name, at.UnixNano())
}

// Ended adds a sampled request that has ended.
func (t *Tracer) Ended(r Request, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keeper.Request(r, now.UnixNano())
}

// Received adds a span that a component exported. now is the time at which it arrived.
func (t *Tracer) Received(s Span, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keeper.Span(s, now.UnixNano())
}

// Settle settles the traces of all requests whose spans have arrived by now. Received and Ended settle only a few.
func (t *Tracer) Settle(now time.Time) {
	for more := true; more; {
		t.mu.Lock()
		more = t.keeper.expire(now.UnixNano(), maxAtOnce) > 0
		t.mu.Unlock()
	}
}

// Flush settles all traces. Call it after the last calls of Received and Ended.
func (t *Tracer) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keeper.Flush()
}

// Kept returns the kept traces, and an index with the counts and statistics so far. The index does not list the traces;
// Index.Write adds them.
func (t *Tracer) Kept() ([]Trace, Index) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.keeper
	return k.Kept(), Index{Sampled: t.share, Counts: k.counts, Names: k.stats.rows(), Parts: k.stats.partRows(), Pods: k.lives.rows()}
}
