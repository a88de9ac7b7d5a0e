package spans

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// manyID returns the n-th of many different IDs.
func manyID(n int) (t TraceID) {
	t[0] = 2
	binary.BigEndian.PutUint64(t[8:], uint64(n))
	return t
}

// NewTree does not panic, counts the spans that it omits, and never reports a broken tree as complete.
func TestHostileTrees(t *testing.T) {
	client := span(1, 0, "request", 100, 200)
	times := func(start, end int64) Span {
		s := span(2, 1, "server", 0, 0)
		s.Start, s.End = start, end
		return s
	}
	chain := []Span{client}
	wide := []Span{client}
	for n := 2; n <= maxSpansInTrace; n++ {
		chain = append(chain, span(n, n-1, "deep", 100, 200))
		wide = append(wide, span(n, 1, "wide", 100, 200))
	}
	for name, c := range map[string]struct {
		all      []Span
		complete bool
	}{
		"a sound trace":              {[]Span{client, span(2, 1, "server", 110, 190)}, true},
		"a deep chain":               {chain, true},
		"many children":              {wide, true},
		"a slow child":               {[]Span{client, span(2, 1, "server", 110, 900)}, true}, // the client gave up
		"a clock that is ahead":      {[]Span{client, span(2, 1, "server", 210, 290)}, false},
		"a clock that is behind":     {[]Span{client, span(2, 1, "server", 10, 90)}, false},
		"times of zero":              {[]Span{client, times(0, 0)}, false},
		"a start of zero":            {[]Span{client, times(0, 150*ms)}, true},
		"the end before the start":   {[]Span{client, times(500*ms, 150*ms)}, false},
		"the year 2500":              {[]Span{client, times(math.MaxInt64, math.MaxInt64)}, false},
		"before 1970":                {[]Span{client, times(math.MinInt64, math.MinInt64)}, false},
		"from 1677 to 2262":          {[]Span{client, times(math.MinInt64, math.MaxInt64)}, true},
		"a missing parent":           {[]Span{client, span(2, 9, "server", 110, 190)}, false},
		"a second root":              {[]Span{client, span(2, 0, "server", 110, 190)}, false},
		"an ID twice":                {[]Span{client, span(2, 1, "a", 110, 190), span(2, 1, "b", 110, 190)}, false},
		"a cycle":                    {[]Span{client, span(2, 3, "a", 110, 190), span(3, 2, "b", 110, 190)}, false},
		"a cycle with the root":      {[]Span{span(1, 2, "a", 110, 190), span(2, 1, "b", 110, 190)}, false},
		"a parent of itself":         {[]Span{client, span(2, 2, "a", 110, 190)}, false},
		"a span below a cycle":       {[]Span{client, span(2, 3, "a", 110, 190), span(3, 2, "b", 110, 190), span(4, 3, "c", 110, 190)}, false},
		"spans without IDs":          {[]Span{{}, {}}, false},
		"the same span without ends": {slices.Repeat([]Span{client}, 1000), false},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.all {
				c.all[i].Limit()
			}
			checkTree(t, c.all)
			if got := NewTree(c.all).Complete(); got != c.complete {
				t.Errorf("complete %t, want %t", got, c.complete)
			}
		})
	}
}

// checkTree checks the invariants of a tree.
func checkTree(t *testing.T, all []Span) {
	t.Helper()
	tree := NewTree(all)
	placed := 0
	critical := make([]int64, len(tree.Roots))
	root := -1
	for depth, n := range tree.All() {
		placed++
		if depth == 0 {
			root++
		}
		critical[root] += n.Critical
		if n.Self < 0 || n.Self > n.Duration() || n.Critical < 0 || n.Critical > n.Duration() {
			t.Fatalf("self %d, critical %d of %d ns", n.Self, n.Critical, n.Duration())
		}
	}
	if placed+tree.Broken != len(all) {
		t.Errorf("%d spans are placed, %d are broken, of %d", placed, tree.Broken, len(all))
	}
	for i, r := range tree.Roots {
		if critical[i] != r.Duration() {
			t.Errorf("the critical path of root %d takes %d ns, want %d", i, critical[i], r.Duration())
		}
	}
}

// Limit bounds the memory of a span from a hostile process.
func TestHugeSpansAreCut(t *testing.T) {
	huge := strings.Repeat("x", 10<<20)
	attributes := slices.Repeat([]Attribute{{huge, huge}}, 1000)
	s := Span{Name: huge, Process: huge, Attributes: slices.Clone(attributes), Events: slices.Repeat([]Event{{Name: huge, At: math.MaxInt64}}, 1000)}
	for i := range s.Events {
		s.Events[i].Attributes = slices.Clone(attributes)
	}
	if !s.Limit() {
		t.Error("Limit does not report that it changed the span")
	}
	const most = 1 << 20
	if s.size() > most || len(s.Process) > longestName || len(s.Name) > longestName {
		t.Errorf("%d bytes, process name of %d, name of %d", s.size(), len(s.Process), len(s.Name))
	}
	if cap(s.Attributes) > 2*maxAttributes || cap(s.Events) > 2*maxEvents || cap(s.Events[0].Attributes) > 2*maxEventAttributes {
		t.Error("the span keeps the memory of what was cut off")
	}
	if s.Limit() {
		t.Error("a second Limit changes the span")
	}
}

// The Keeper's memory stays bounded with a million spans of unknown traces and 100,000 groups of requests.
func TestFloodIsBounded(t *testing.T) {
	limits := Limits{Bytes: 4 << 20, Wait: time.Hour, Groups: 20}
	k := NewKeeper(limits, 1)
	const unknown, groups = 1_000_000, 100_000
	for n := range unknown {
		k.Span(Span{Trace: manyID(n), ID: id(1), Name: "a", Process: "p"}, int64(n))
		if k.bytes > limits.Bytes {
			t.Fatalf("%d bytes after %d spans", k.bytes, n+1)
		}
	}
	held := 0
	for _, h := range k.traces {
		held += len(h.spans)
	}
	if c := k.Counts(); c.Spans != unknown || c.Full+c.Unmatched+int64(held) != unknown {
		t.Errorf("%d spans are in memory; counts %+v", held, c)
	}
	for n := range groups {
		r := Request{Trace: manyID(unknown + n), ID: id(1), Load: "l", Verb: fmt.Sprintf("verb-%d", n), Due: 1, Last: 2}
		k.Request(r, unknown)
		for i := range 2 { // one span is too late for a request that is not kept
			k.Span(Span{Trace: r.Trace, ID: id(2 + i), Parent: r.ID, Name: "a", Start: 1, End: 2}, unknown)
		}
	}
	if k.bytes > limits.Bytes || len(k.groups) > limits.Groups {
		t.Errorf("%d bytes, %d groups", k.bytes, len(k.groups))
	}
	k.Flush()
	all := k.Kept()
	if len(all) != limits.Groups || k.Counts().Requests != groups {
		t.Errorf("%d traces are kept, want one for each of %d groups; counts %+v", len(all), limits.Groups, k.Counts())
	}
	for i := range all {
		if len(all[i].Spans) != 2 {
			t.Errorf("a kept trace has %d spans, want 2", len(all[i].Spans))
		}
	}
}

// A process that uses the trace of a load's request for a request of another client cannot make the Keeper lose track of
// its memory.
func TestTraceOfTwoRequests(t *testing.T) {
	k := NewKeeper(Limits{Slowest: 1, Sample: 1, Failed: 1}, 1)
	k.BeginPhase("p", 0)
	for _, s := range writeOf(1, "POST "+namespaced+"configmaps", "x/v1", "/configmaps/ns/a", 0, 1) {
		k.Span(s, 0)
	}
	k.Flush()
	for n := 1; n <= 100; n++ {
		r := request(n, int64(n), 200)
		k.Request(r, 0)
		k.Span(server(r), 0)
		k.Flush()
	}
	size := 0
	for _, x := range k.Kept() {
		h := k.traces[x.Trace]
		if h == nil {
			t.Fatalf("trace %s is kept, but is not in memory", x.Trace)
		}
		size += overhead + h.bytes
	}
	if size != k.bytes || len(k.traces) != len(k.Kept()) {
		t.Errorf("%d bytes of %d traces, want %d of %d", k.bytes, len(k.traces), size, len(k.Kept()))
	}
}

// The largest traces can be written, and are read back.
func TestLargestTracesAreReadBack(t *testing.T) {
	k := NewKeeper(Limits{}, 1)
	r := request(1, 50, 200)
	k.Request(r, 0)
	const n = 100
	for i := range n {
		s := server(r)
		s.ID = id(1000 + i)
		s.Attributes = slices.Repeat([]Attribute{{"key", strings.Repeat("\x00", longestValue)}}, maxAttributes) // 6 bytes each in JSON
		k.Span(s, 0)
	}
	dir := saved(t, k)
	_, all, err := Read(dir)
	if err != nil || len(all) != 1 || len(all[0].Spans) != n {
		t.Errorf("%d traces, %v", len(all), err)
	}
}
