package spans

import (
	"cmp"
	"container/heap"
	"container/list"
	"math/rand/v2"
	"slices"
	"time"
)

// Request is the client's view of a traced request.
type Request struct {
	Trace TraceID
	ID    ID // of the client's span, the parent of the API server's span
	// Load is the load that sent the request; empty: another client of the API server. Phase is the phase that the
	// request counts for.
	Load, Verb, Resource, Phase string
	// Due is the time at which the request was to be sent, and Sent the time at which the generator began to send it.
	// First and Last are the times of the first and the last byte of the response; zero: there was none. Nanoseconds
	// since 1970.
	Due, Sent, First, Last int64
	// Status is the HTTP status of the response. Failure is the kind of failure without a response, such as "timeout".
	Status  int
	Failure string
}

// Failed reports whether the request failed: without a response, with 429 or with 5xx.
func (r *Request) Failed() bool { return r.Failure != "" || r.Status == 429 || r.Status >= 500 }

// Duration returns the time from Due to Last in nanoseconds.
func (r *Request) Duration() int64 { return max(r.Last-r.Due, 0) }

// Trace is a kept trace.
type Trace struct {
	Request
	Spans []Span
	// Why lists the reasons for which the trace was kept: Slow, Sampled, Unsuccessful.
	Why []string
	// Lost is the number of spans that were dropped because the trace had too many.
	Lost int
}

// Reasons for which a trace is kept.
const (
	Slow         = "slow"    // one of the slowest requests of its load, verb and phase
	Sampled      = "sampled" // one of a uniform sample of the requests of its load, verb and phase
	Unsuccessful = "failed"  // one of the first failed requests of its load, verb and phase
)

// Limits configure a Keeper. A zero field means the default.
type Limits struct {
	// Slowest, Sample and Failed are the numbers of traces to keep for each load, verb and phase; default 5, 3 and 5.
	Slowest, Sample, Failed int
	// Bytes is the maximum size of all spans in memory; default 32 MiB.
	Bytes int
	// Wait is how long the Keeper holds spans of a trace whose request it does not know; default 30 s. A component sends
	// its spans before or after the client has the response.
	Wait time.Duration
	// Groups is the maximum number of combinations of load, verb and phase; default 500. Requests of others are not kept.
	Groups int
}

func (l Limits) defaults() Limits {
	l.Slowest, l.Sample, l.Failed = cmp.Or(l.Slowest, 5), cmp.Or(l.Sample, 3), cmp.Or(l.Failed, 5)
	l.Bytes, l.Wait, l.Groups = cmp.Or(l.Bytes, 32<<20), cmp.Or(l.Wait, 30*time.Second), cmp.Or(l.Groups, 500)
	return l
}

// Counts says what a Keeper received and what it dropped.
type Counts struct {
	// Spans is the number of received spans, and Requests the number of traced requests.
	Spans    int64 `json:"spans"`
	Requests int64 `json:"requests"`
	// Unmatched: spans of traces whose request the run did not send, or whose request did not end in time
	Unmatched int64 `json:"unmatched"`
	// Full: spans that were dropped because the memory for traces was full
	Full int64 `json:"full"`
	// Cut: spans with attributes, names or times that were cut off or corrected
	Cut int64 `json:"cut"`
	// Excess: spans that were dropped because their trace had too many
	Excess int64 `json:"excess"`
}

// Keeper receives spans and requests in any order and keeps the traces of the slowest requests, of a uniform sample and
// of failed requests of each load, verb and phase. Its memory is bounded. It is not safe for concurrent use.
type Keeper struct {
	limits  Limits
	random  *rand.Rand
	traces  map[TraceID]*held
	order   list.List // *held: traces whose request is unknown, the oldest first
	dropped *recent   // traces that the Keeper does not want
	groups  map[groupKey]*group
	bytes   int
	counts  Counts
}

// held is a trace of which something has arrived.
type held struct {
	id      TraceID
	spans   []Span
	lost    int
	bytes   int
	request *Request      // nil until the request has ended
	since   int64         // when its first span arrived
	waiting *list.Element // in Keeper.order; nil if request is known
	uses    int           // number of sets that contain the trace
}

type groupKey struct{ load, verb, phase string }

// group holds the kept traces of a load, verb and phase.
type group struct {
	slow     slowest
	sample   []*held
	failed   []*held
	requests int64
}

// NewKeeper returns a Keeper that draws samples with a seed.
func NewKeeper(l Limits, seed uint64) *Keeper {
	l = l.defaults()
	return &Keeper{
		limits: l, random: rand.New(rand.NewPCG(seed, 0x7261)), traces: map[TraceID]*held{}, groups: map[groupKey]*group{},
		dropped: newRecent(1 << 16),
	}
}

// Counts returns what the Keeper received and dropped so far.
func (k *Keeper) Counts() Counts { return k.counts }

// Span adds a received span. now is the time in nanoseconds since 1970.
func (k *Keeper) Span(s Span, now int64) {
	k.counts.Spans++
	if s.Limit() {
		k.counts.Cut++
	}
	k.expire(now)
	h := k.traces[s.Trace]
	if h == nil {
		if k.dropped.has(s.Trace) {
			return
		}
		h = &held{id: s.Trace, since: now}
		h.waiting = k.order.PushBack(h)
		k.traces[s.Trace] = h
	}
	if len(h.spans) >= mostSpansInTrace {
		h.lost++
		k.counts.Excess++
		return
	}
	size := s.size()
	h.spans, h.bytes, k.bytes = append(h.spans, s), h.bytes+size, k.bytes+size
	k.shrink(h)
}

// Request adds a request that has ended. now is the time in nanoseconds since 1970.
func (k *Keeper) Request(r Request, now int64) {
	k.counts.Requests++
	k.expire(now)
	g := k.group(groupKey{r.Load, r.Verb, r.Phase})
	h := k.traces[r.Trace]
	if h == nil {
		h = &held{id: r.Trace, since: now}
	} else if h.waiting != nil {
		k.order.Remove(h.waiting)
		h.waiting = nil
	}
	h.request = &r
	k.traces[r.Trace] = h
	h.uses++ // until all sets have decided
	if g != nil {
		k.offer(g, h)
	}
	k.release(h)
}

func (k *Keeper) group(key groupKey) *group {
	g := k.groups[key]
	if g == nil && len(k.groups) < k.limits.Groups {
		g = &group{}
		k.groups[key] = g
	}
	return g
}

// offer adds a trace to the sets of its group that want it.
func (k *Keeper) offer(g *group, h *held) {
	g.requests++
	h.uses++
	if heap.Push(&g.slow, h); len(g.slow) > k.limits.Slowest {
		k.release(heap.Pop(&g.slow).(*held))
	}
	// Algorithm R: each request is in the sample with the same probability.
	if len(g.sample) < k.limits.Sample {
		h.uses++
		g.sample = append(g.sample, h)
	} else if i := k.random.Int64N(g.requests); i < int64(len(g.sample)) {
		h.uses++
		k.release(g.sample[i])
		g.sample[i] = h
	}
	if h.request.Failed() && len(g.failed) < k.limits.Failed {
		h.uses++
		g.failed = append(g.failed, h)
	}
}

// release removes a trace from a set, and drops it if it is in no other set.
func (k *Keeper) release(h *held) {
	if h.uses--; h.uses == 0 {
		k.drop(h)
	}
}

// drop forgets a trace. Spans of it that arrive later are dropped too.
func (k *Keeper) drop(h *held) {
	if h.waiting != nil {
		k.order.Remove(h.waiting)
		h.waiting = nil
	}
	delete(k.traces, h.id)
	k.bytes -= h.bytes
	k.dropped.add(h.id)
}

// expire drops traces whose request has been unknown for too long.
func (k *Keeper) expire(now int64) {
	for e := k.order.Front(); e != nil; e = k.order.Front() {
		h := e.Value.(*held)
		if now-h.since < int64(k.limits.Wait) {
			return
		}
		k.counts.Unmatched += int64(len(h.spans))
		k.drop(h)
	}
}

// shrink drops spans until they fit in memory: traces whose request is unknown, the oldest first, and then the spans of
// the trace that has just grown.
func (k *Keeper) shrink(grown *held) {
	for k.bytes > k.limits.Bytes {
		e := k.order.Front()
		if e == nil {
			k.counts.Full += int64(len(grown.spans))
			grown.lost += len(grown.spans)
			k.bytes -= grown.bytes
			grown.spans, grown.bytes = nil, 0
			return
		}
		h := e.Value.(*held)
		k.counts.Full += int64(len(h.spans))
		k.drop(h)
	}
}

// Kept returns the kept traces: by phase, load and verb as their first requests ended, the slowest requests first.
func (k *Keeper) Kept() []Trace {
	why := map[*held][]string{}
	for _, g := range k.groups {
		for reason, set := range map[string][]*held{Slow: g.slow, Sampled: g.sample, Unsuccessful: g.failed} {
			for _, h := range set {
				why[h] = append(why[h], reason)
			}
		}
	}
	all := make([]Trace, 0, len(why))
	for h, reasons := range why {
		slices.Sort(reasons)
		all = append(all, Trace{Request: *h.request, Spans: slices.Clone(h.spans), Why: reasons, Lost: h.lost})
	}
	slices.SortFunc(all, func(a, b Trace) int {
		return cmp.Or(cmp.Compare(a.Load, b.Load), cmp.Compare(a.Verb, b.Verb), cmp.Compare(b.Duration(), a.Duration()), cmp.Compare(a.Trace.String(), b.Trace.String()))
	})
	return all
}

// slowest is a heap with the fastest request on top.
type slowest []*held

func (s slowest) Len() int           { return len(s) }
func (s slowest) Less(i, j int) bool { return s[i].request.Duration() < s[j].request.Duration() }
func (s slowest) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slowest) Push(x any)        { *s = append(*s, x.(*held)) }
func (s *slowest) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// recent is a set of the most recently added trace IDs.
type recent struct {
	known map[TraceID]bool
	ring  []TraceID
	next  int
}

func newRecent(size int) *recent { return &recent{map[TraceID]bool{}, make([]TraceID, 0, size), 0} }

func (r *recent) has(id TraceID) bool { return r.known[id] }

func (r *recent) add(id TraceID) {
	if r.known[id] {
		return
	}
	r.known[id] = true
	if len(r.ring) < cap(r.ring) {
		r.ring = append(r.ring, id)
		return
	}
	delete(r.known, r.ring[r.next])
	r.ring[r.next] = id
	r.next = (r.next + 1) % len(r.ring)
}
