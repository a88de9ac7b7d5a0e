package spans

import (
	"cmp"
	"container/list"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Limits configure a Keeper. A zero field means the default.
type Limits struct {
	// Slowest, Sample and Failed are the numbers of traces to keep for each group of a load; default 5, 3 and 5. A group
	// contains requests with the same client, verb, resource and phase. For each group of another client, the Keeper keeps
	// the 2 slowest and the first 2 failed traces.
	Slowest, Sample, Failed int
	// Bytes is the maximum size of all traces in memory; default 32 MiB.
	Bytes int
	// Settle is how long the Keeper waits for the spans of a request that has ended; default 3 s. Wait is how long it
	// holds spans of a request that has not ended; default 70 s, longer than the default timeout of a load's requests.
	Settle, Wait time.Duration
	// Groups is the maximum number of groups; default 300. The Keeper reserves half of them for loads. It does not keep
	// traces of further groups.
	Groups int
}

func (l Limits) defaults() Limits {
	l.Slowest, l.Sample, l.Failed = cmp.Or(l.Slowest, 5), cmp.Or(l.Sample, 3), cmp.Or(l.Failed, 5)
	l.Bytes, l.Groups = cmp.Or(l.Bytes, 32<<20), cmp.Or(l.Groups, 300)
	l.Settle, l.Wait = cmp.Or(l.Settle, 3*time.Second), cmp.Or(l.Wait, 70*time.Second)
	return l
}

// of returns the numbers of traces to keep in a group, for a load (client is empty) or another client.
func (l Limits) of(client string) (slowest, sample, failed int) {
	if client == "" {
		return l.Slowest, l.Sample, l.Failed
	}
	return 2, 0, 2
}

// Counts holds the numbers of spans and requests that a Keeper received and dropped.
type Counts struct {
	// Spans is the number of received spans, and Requests the number of traced requests.
	Spans    int64 `json:"spans"`
	Requests int64 `json:"requests"`
	// Incomplete is the number of requests whose spans are missing or contradict each other. The statistics omit them.
	Incomplete int64 `json:"incomplete"`
	// Unmatched is the number of spans of watches, of requests that did not end in time, and of operations outside of
	// requests.
	Unmatched int64 `json:"unmatched"`
	// Full is the number of spans that were dropped because the memory for traces was full.
	Full int64 `json:"full"`
	// Cut is the number of spans with a shortened text, dropped attributes or events, or a corrected time.
	Cut int64 `json:"cut"`
	// Late is the number of spans that arrived after the Keeper had dropped their trace.
	Late int64 `json:"late"`
	// Excess is the number of spans that were dropped because their trace had too many spans.
	Excess int64 `json:"excess"`
	// Skipped is the number of requests that were not traced because the memory for traces was nearly full.
	Skipped int64 `json:"skipped"`
}

// Keeper receives spans and requests in any order. In each group, it keeps the traces of the slowest requests, of a
// uniform random sample and of the first failed requests. It adds up the spans of all requests. Its memory is bounded.
// It is not safe for concurrent use.
type Keeper struct {
	limits   Limits
	random   *rand.Rand
	traces   map[TraceID]*held
	waiting  list.List // traces (*held) whose request has not ended, the oldest first
	settling list.List // traces (*held) whose request has ended, but whose last spans may still arrive; the oldest first
	dropped  *recent   // traces whose later spans the Keeper drops
	linked   *recent   // maps a trace that an API server began to the client's trace
	groups   map[groupKey]*group
	phases   []phase
	stats    stats
	lives    lives
	bytes    int
	counts   Counts
}

// held is a trace whose request or spans have arrived, at least in part.
type held struct {
	id      TraceID
	spans   []Span
	lost    int
	bytes   int
	request *Request      // nil until the request has ended
	since   int64         // time when the trace was added to list, in nanoseconds since 1970
	list    *list.List    // list that contains the trace: Keeper.waiting, Keeper.settling or nil
	element *list.Element // element of the trace in list
	uses    int           // number of sets that contain the trace, plus 1 if list is not nil
}

// overhead is the approximate size of a trace without spans, in bytes.
const overhead = 500

func (h *held) tree() *Tree {
	t := Trace{Spans: h.spans}
	if h.request != nil {
		t.Request = *h.request
	}
	return t.Tree()
}

type phase struct {
	name  string
	since int64
}

type groupKey struct{ load, client, verb, resource, phase string }

// group holds the kept traces of requests with the same client (a load or another), verb, resource and phase.
type group struct {
	slow      []*held
	sample    []*held
	failed    []*held
	withSpans int64 // number of offered traces with spans
}

// NewKeeper returns a Keeper. The seed determines its random samples.
func NewKeeper(l Limits, seed uint64) *Keeper {
	l = l.defaults()
	return &Keeper{
		limits: l, random: rand.New(rand.NewPCG(seed, 0x7261)), traces: map[TraceID]*held{}, groups: map[groupKey]*group{},
		dropped: newRecent(1 << 16), linked: newRecent(1 << 16), stats: newStats(), lives: lives{seed: seed},
	}
}

// Counts returns what the Keeper received and dropped so far.
func (k *Keeper) Counts() Counts { return k.counts }

// BeginPhase begins a phase at the time `at`, in ns since 1970. A request belongs to the phase in which it was due.
func (k *Keeper) BeginPhase(name string, at int64) { k.phases = append(k.phases, phase{name, at}) }

func (k *Keeper) phaseAt(at int64) (name string) {
	for _, p := range k.phases {
		if p.since <= at {
			name = p.name
		}
	}
	return name
}

// Span adds a received span. now is the time in nanoseconds since 1970.
func (k *Keeper) Span(s Span, now int64) {
	k.counts.Spans++
	if s.Limit() {
		k.counts.Cut++
	}
	k.expire(now, maxAtOnce)
	if s.Link.Trace == unsampled { // an API server's own sample of a load's requests
		k.counts.Unmatched++
		k.dropped.add(s.Trace, TraceID{})
		return
	}
	if s.Link.Trace != (TraceID{}) && s.Parent == (ID{}) {
		k.join(s.Trace, s.Link.Trace, now)
		s.Parent = s.Link.ID
	}
	k.add(s, now)
}

// join makes the spans of a trace part of another trace, including the spans that have already arrived. An API server
// that does not trust a client begins a new trace, and links it to the client's trace.
func (k *Keeper) join(from, to TraceID, now int64) {
	if from == to || k.linked.has(from) {
		return
	}
	k.linked.add(from, to)
	if h := k.traces[from]; h != nil && h.request == nil {
		h.list.Remove(h.element)
		k.forget(h)
		for _, s := range h.spans {
			k.add(s, now)
		}
	}
}

// add adds a span to the trace that it belongs to.
func (k *Keeper) add(s Span, now int64) {
	if to, ok := k.linked.known[s.Trace]; ok {
		s.Trace = to
	}
	h := k.traces[s.Trace]
	if h == nil {
		if k.dropped.has(s.Trace) {
			k.counts.Late++
			return
		}
		h = k.hold(s.Trace, now)
	}
	if len(h.spans) >= maxSpansInTrace {
		h.lost++
		k.counts.Excess++
		return
	}
	size := s.size()
	h.spans, h.bytes, k.bytes = append(h.spans, s), h.bytes+size, k.bytes+size
	if h.request == nil {
		k.other(h, &s, now)
	}
	k.shrink(h)
}

// other looks for a request of another client in the trace h, after the span s was added. A span without a parent shows
// that the trace is not a trace of a load's request.
func (k *Keeper) other(h *held, s *Span, now int64) {
	fresh := h.spans[len(h.spans)-1:]
	if s.Parent == (ID{}) && h.list == &k.waiting {
		k.move(h, &k.settling, now)
		fresh = h.spans
	}
	if h.list != &k.settling {
		return
	}
	for i := range fresh {
		if r, ok := requestOf(&fresh[i]); ok {
			reroot(h.spans, r.root)
			k.ended(h, r.Request)
			return
		}
	}
}

// Request adds a load's request that has ended. The Keeper sets its phase. now is the time in nanoseconds since 1970.
func (k *Keeper) Request(r Request, now int64) {
	k.expire(now, maxAtOnce)
	h := k.traces[r.Trace]
	if h == nil {
		h = k.hold(r.Trace, now)
	}
	k.move(h, &k.settling, now)
	k.ended(h, r)
}

// hold adds a trace whose request has not ended.
func (k *Keeper) hold(id TraceID, now int64) *held {
	h := &held{id: id}
	k.traces[id] = h
	k.bytes += overhead
	k.move(h, &k.waiting, now)
	return h
}

func (k *Keeper) move(h *held, to *list.List, now int64) {
	if h.list != nil {
		h.list.Remove(h.element)
	} else {
		h.uses++
	}
	h.list, h.element, h.since = to, to.PushBack(h), now
}

// ended records that the request r of a trace has ended.
func (k *Keeper) ended(h *held, r Request) {
	k.counts.Requests++
	h.request = &r
}

// group returns the group of a key. It returns nil if the group is new and there are too many groups.
func (k *Keeper) group(key groupKey) *group {
	g := k.groups[key]
	most := k.limits.Groups
	if key.client != "" {
		most /= 2 // the other groups are for loads
	}
	if g == nil && len(k.groups) < most {
		g = &group{}
		k.groups[key] = g
	}
	return g
}

// offer adds a trace to the slowest, sampled or failed traces of its group, if it is one of them. A trace with spans
// replaces a trace without spans, because most traces have no spans if the API servers sample fewer requests than the
// loads.
func (k *Keeper) offer(h *held) {
	g := k.group(h.request.group())
	if g == nil {
		return
	}
	slowest, sample, failed := k.limits.of(h.request.Client)
	h.uses++
	if g.slow = append(g.slow, h); len(g.slow) > slowest {
		i := slices.Index(g.slow, slices.MinFunc(g.slow, bySpeed))
		k.release(g.slow[i])
		g.slow = slices.Delete(g.slow, i, i+1)
	}
	if i, in := g.place(h, sample, k.random); in {
		h.uses++
		if i == len(g.sample) {
			g.sample = append(g.sample, h)
		} else {
			k.release(g.sample[i])
			g.sample[i] = h
		}
	}
	if h.request.Failed() && len(g.failed) < failed {
		h.uses++
		g.failed = append(g.failed, h)
	}
}

// place returns the index at which to put a trace into a sample of at most `most` traces. It returns false if the trace is
// not in the sample. Each trace with spans is in the sample with the same probability (algorithm R).
func (g *group) place(h *held, most int, random *rand.Rand) (i int, in bool) {
	if len(h.spans) > 0 {
		g.withSpans++
	}
	i = slices.IndexFunc(g.sample, func(x *held) bool { return len(x.spans) == 0 })
	switch {
	case len(g.sample) < most:
		return len(g.sample), true
	case len(h.spans) == 0 || most == 0:
		return 0, false
	case i >= 0:
		return i, true
	}
	i = int(random.Int64N(g.withSpans))
	return i, i < most
}

// settle removes a trace from its list when the Keeper stops waiting for its spans. If its request has ended, settle adds
// it to the statistics, and keeps it if a group or the life of a pod needs it.
func (k *Keeper) settle(h *held) {
	h.list.Remove(h.element)
	h.list = nil
	defer k.release(h)
	r := h.request
	if r == nil {
		k.counts.Unmatched += int64(len(h.spans))
		return
	}
	r.Phase = k.phaseAt(r.Due) // a phase begins with a scrape, so the Keeper learns of it late
	if !k.stats.add(h) {
		k.counts.Incomplete++
	}
	k.lives.add(h, k.release)
	if r.ofRun() {
		k.offer(h)
	}
}

// release records that a set or list no longer contains a trace. If no other contains it, release drops the trace and
// its later spans.
func (k *Keeper) release(h *held) {
	if h.uses--; h.uses == 0 {
		k.forget(h)
		k.dropped.add(h.id, TraceID{})
	}
}

func (k *Keeper) forget(h *held) {
	delete(k.traces, h.id)
	k.bytes -= overhead + h.bytes
}

// maxAtOnce is the maximum number of traces that the arrival of a span or a request settles. If it settled many traces
// at once, for example after a stall, this would delay the load that sent the request.
const maxAtOnce = 4

// expire settles the traces that the Keeper has waited long enough for, and drops the traces whose request has not
// ended in time. It handles at most `most` of each kind, and returns how many traces it handled.
func (k *Keeper) expire(now int64, most int) (settled int) {
	for _, l := range [...]struct {
		*list.List
		after time.Duration
	}{{&k.settling, k.limits.Settle}, {&k.waiting, k.limits.Wait}} {
		for range most {
			e := l.Front()
			if e == nil || now-e.Value.(*held).since < int64(l.after) {
				break
			}
			k.settle(e.Value.(*held))
			settled++
		}
	}
	return settled
}

// Flush settles all traces.
func (k *Keeper) Flush() { k.expire(math.MaxInt64, math.MaxInt) }

// nearlyFull reports whether the traces take over three quarters of Limits.Bytes.
func (k *Keeper) nearlyFull() bool { return k.bytes > k.limits.Bytes/4*3 }

// shrink frees memory until the traces fit into Limits.Bytes. It first drops the oldest traces whose request has not
// ended. Then it settles the oldest other traces early. Only then does it drop the spans of the trace that has just grown.
func (k *Keeper) shrink(grown *held) {
	for k.bytes > k.limits.Bytes {
		if e := k.waiting.Front(); e != nil {
			h := e.Value.(*held)
			k.counts.Full += int64(len(h.spans))
			k.counts.Unmatched -= int64(len(h.spans)) // settle adds them
			k.settle(h)
			continue
		}
		if e := k.settling.Front(); e != nil {
			k.settle(e.Value.(*held))
			continue
		}
		if k.traces[grown.id] == grown {
			k.counts.Full += int64(len(grown.spans))
			grown.lost += len(grown.spans)
			k.bytes -= grown.bytes
			grown.spans, grown.bytes = nil, 0
		}
		return
	}
}

// Kept returns the kept traces: first of loads, by load, and then of other clients, by client. The slowest requests come
// first. The traces share their spans with the Keeper, which never changes a span of a request that has ended.
func (k *Keeper) Kept() []Trace {
	why := map[*held][]string{}
	keep := func(reason string, set []*held) {
		for _, h := range set {
			if !slices.Contains(why[h], reason) {
				why[h] = append(why[h], reason)
			}
		}
	}
	for _, g := range k.groups {
		keep(Slow, g.slow)
		keep(Sampled, g.sample)
		keep(Unsuccessful, g.failed)
	}
	keep(Life, k.lives.kept())
	all := make([]Trace, 0, len(why))
	for h, reasons := range why {
		slices.Sort(reasons)
		all = append(all, Trace{Request: *h.request, Spans: slices.Clip(h.spans), Why: reasons, Lost: h.lost})
	}
	slices.SortFunc(all, func(a, b Trace) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Load, b.Load), cmp.Compare(b.Duration(), a.Duration()), cmp.Compare(a.Trace.String(), b.Trace.String()))
	})
	return all
}

// bySpeed orders traces: first those without spans, then the fastest. The order of two traces can change, because spans may
// arrive while a trace is in a set.
func bySpeed(a, b *held) int {
	return cmp.Or(cmp.Compare(min(len(a.spans), 1), min(len(b.spans), 1)), cmp.Compare(a.request.Duration(), b.request.Duration()))
}
