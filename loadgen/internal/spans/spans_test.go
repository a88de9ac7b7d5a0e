package spans

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

func id(n int) (x ID) {
	x[0], x[7] = 1, byte(n)
	x[6] = byte(n >> 8)
	return x
}

func traceID(n int) (x TraceID) {
	x[0], x[15], x[14] = 1, byte(n), byte(n>>8)
	return x
}

func span(n, parent int, name string, start, end int64) Span {
	s := Span{Trace: traceID(1), ID: id(n), Process: "kube-apiserver-0", Name: name, Start: start * ms, End: end * ms}
	if parent != 0 {
		s.Parent = id(parent)
	}
	return s
}

// The critical path follows the child that ended last, then the child that ended last before it began.
func TestCriticalPath(t *testing.T) {
	tree := NewTree([]Span{
		span(1, 0, "request", 0, 100),
		span(2, 1, "audit", 5, 10),
		span(3, 1, "webhook a", 10, 40), // parallel to b, which ends later
		span(4, 1, "webhook b", 10, 50),
		span(5, 1, "etcd", 60, 90),
		span(6, 5, "raft", 70, 85),
	})
	got := map[string][2]int64{}
	for _, n := range tree.All() {
		got[n.Name] = [2]int64{n.Self / ms, n.Critical / ms}
	}
	for name, want := range map[string][2]int64{
		"request": {25, 25}, "audit": {5, 5}, "webhook a": {30, 0}, "webhook b": {40, 40}, "etcd": {15, 15}, "raft": {15, 15},
	} {
		if got[name] != want {
			t.Errorf("%s: self and critical %v, want %v", name, got[name], want)
		}
	}
	if !tree.Complete() {
		t.Error("the tree is not complete")
	}
}

// The critical path is as long as the root, for all kinds of trees.
func TestCriticalPathIsAsLongAsTheRoot(t *testing.T) {
	for seed := range 200 {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		all := []Span{span(1, 0, "root", 0, 1000)}
		for n := 2; n < 40; n++ {
			start := random.Int64N(1000)
			all = append(all, span(n, 1+random.IntN(n-1), "x", start, start+random.Int64N(400)))
		}
		sum := int64(0)
		for _, n := range NewTree(all).All() {
			sum += n.Critical
			if n.Self < 0 || n.Critical < 0 || n.Self > n.Duration() {
				t.Fatalf("seed %d: self %d, critical %d of %d", seed, n.Self, n.Critical, n.Duration())
			}
		}
		if sum != 1000*ms {
			t.Fatalf("seed %d: the critical path takes %d ms, want 1000", seed, sum/ms)
		}
	}
}

func TestBrokenTraces(t *testing.T) {
	for name, c := range map[string]struct {
		all             []Span
		roots           int
		orphans, broken int
	}{
		"missing parent": {[]Span{span(1, 0, "a", 0, 9), span(2, 7, "b", 1, 2)}, 2, 1, 0},
		"cycle":          {[]Span{span(1, 0, "a", 0, 9), span(2, 3, "b", 1, 2), span(3, 2, "c", 1, 2)}, 1, 0, 2},
		"own parent":     {[]Span{span(1, 1, "a", 0, 9)}, 0, 0, 1},
		"twice":          {[]Span{span(1, 0, "a", 0, 9), span(1, 0, "b", 0, 9)}, 1, 0, 1},
		"nothing":        {nil, 0, 0, 0},
	} {
		tree := NewTree(c.all)
		if len(tree.Roots) != c.roots || tree.Orphans != c.orphans || tree.Broken != c.broken || tree.Complete() {
			t.Errorf("%s: %d roots, %d orphans, %d broken, complete %t", name, len(tree.Roots), tree.Orphans, tree.Broken, tree.Complete())
		}
	}
}

func request(n int, took int64, status int) Request {
	return Request{Trace: traceID(n), ID: id(n), Load: "news", Verb: "patch", Resource: "configmaps", Phase: "update", Due: 1000 * ms, Sent: 1001 * ms, First: (999 + took) * ms, Last: (1000 + took) * ms, Status: status}
}

// server returns the span of an API server for a request.
func server(r Request) Span {
	return Span{Trace: r.Trace, ID: id(500), Parent: r.ID, Process: "kube-apiserver-0", Name: "PATCH", Start: r.Sent, End: r.Last}
}

func TestKeeperKeepsTheSlowestAFewOthersAndFailures(t *testing.T) {
	k := NewKeeper(Limits{Slowest: 2, Sample: 3, Failed: 1}, 1)
	for n := 1; n <= 200; n++ {
		status := 200
		if n%50 == 0 {
			status = 500
		}
		r := request(n, int64(1+(n*37)%199), status)
		if n%2 == 0 { // spans arrive before or after the response
			k.Span(server(r), 0)
		}
		k.Request(r, 0)
		if n%2 == 1 {
			k.Span(server(r), 0)
		}
	}
	k.Flush()
	all := k.Kept()
	why := map[string]int{}
	for i := range all {
		for _, w := range all[i].Why {
			why[w]++
		}
		if len(all[i].Spans) != 1 {
			t.Errorf("trace %s has %d spans, want 1", all[i].Trace, len(all[i].Spans))
		}
	}
	if why[Slow] != 2 || why[Sampled] != 3 || why[Unsuccessful] != 1 {
		t.Errorf("kept %v", why)
	}
	if d := all[0].Duration(); d != 199*ms {
		t.Errorf("the slowest kept request took %d ms, want 199", d/ms)
	}
	if len(k.traces) != len(all) {
		t.Errorf("%d traces are in memory, %d are kept", len(k.traces), len(all))
	}
}

func TestSampleIsUniform(t *testing.T) {
	first := 0
	for seed := range 400 {
		k := NewKeeper(Limits{Slowest: 1, Sample: 1, Failed: 1}, uint64(seed))
		for n := 1; n <= 10; n++ {
			if n%2 == 0 { // without spans: is not in the sample if there are others
				k.Request(request(100+n, int64(n), 200), 0)
			}
			r := request(n, int64(n), 200)
			k.Span(server(r), 0)
			k.Request(r, 0)
		}
		k.Flush()
		for _, x := range k.Kept() {
			if x.Trace == traceID(1) {
				first++
			}
		}
	}
	if first < 20 || first > 64 { // 40 expected; 4 standard deviations
		t.Errorf("the first of ten requests was in %d of 400 samples of one", first)
	}
}

// Spans that arrive late do not change which requests are the slowest.
func TestLateSpansOfTheSlowest(t *testing.T) {
	k := NewKeeper(Limits{Slowest: 2, Sample: 1, Failed: 1}, 1)
	first := request(1, 100, 200)
	for _, r := range []Request{first, request(2, 50, 200), request(3, 60, 200)} {
		k.Request(r, 0)
		if r.Trace != first.Trace {
			k.Span(server(r), 0)
		}
		k.Flush()
		if r.Trace == traceID(2) {
			k.Span(server(first), 0)
		}
	}
	for _, x := range k.Kept() {
		if slow := slices.Contains(x.Why, Slow); slow != (x.Trace != traceID(2)) {
			t.Errorf("a request of %d ms is one of the two slowest: %t", x.Duration()/ms, slow)
		}
	}
}

// A request that ends while the scrape at the start of a phase is running belongs to the phase.
func TestPhaseThatIsKnownLate(t *testing.T) {
	k := NewKeeper(Limits{}, 1)
	r := request(1, 5, 200)
	k.Request(r, r.Last)
	k.BeginPhase("p", r.Due)
	k.Flush()
	if all := k.Kept(); len(all) != 1 || all[0].Phase != "p" {
		t.Errorf("kept %+v", all)
	}
}

// Requests may last as long as the default timeout of a load, a minute. All their spans are kept.
func TestSpansOfALongRequest(t *testing.T) {
	k := NewKeeper(Limits{}, 1)
	r := request(1, 60_000, 200)
	root := server(r)
	early := root
	early.ID, early.Parent, early.End = id(501), root.ID, early.Start+1
	k.Span(early, r.Sent)
	k.Span(root, r.Last)
	k.Request(r, r.Last)
	k.Flush()
	if all := k.Kept(); len(all) != 1 || len(all[0].Spans) != 2 || k.Counts().Incomplete != 0 {
		t.Errorf("%+v, counts %+v", all, k.Counts())
	}
}

// Spans whose request is unknown take a bounded time and memory, and never displace kept traces.
func TestMemoryIsBounded(t *testing.T) {
	k := NewKeeper(Limits{Bytes: 1 << 20, Wait: time.Second}, 1)
	r := request(1, 50, 200)
	k.Request(r, 0)
	k.Span(server(r), 0)
	for n := range 200_000 {
		s := Span{Trace: traceID(2 + n%60_000), ID: id(n % 60_000), Name: strings.Repeat("x", 300), Start: 5, End: 1}
		s.Trace[3] = byte(n >> 16)
		k.Span(s, int64(n)*1000)
	}
	c := k.Counts()
	if k.bytes > 1<<20 || c.Full+c.Unmatched == 0 || c.Cut != 200_000 {
		t.Errorf("%d bytes, counts %+v", k.bytes, c)
	}
	if all := k.Kept(); len(all) != 1 || len(all[0].Spans) != 1 {
		t.Errorf("kept %+v", all)
	}
	for n := range maxSpansInTrace + 10 {
		s := server(r)
		s.ID = id(n)
		k.Span(s, 0)
	}
	if all := k.Kept(); all[0].Lost != 11 || k.Counts().Excess != 11 {
		t.Errorf("lost %d, counts %+v", all[0].Lost, k.Counts())
	}
}

func TestOTLPIsReadBack(t *testing.T) {
	want := span(1, 0, "a", 1, 2)
	want.Client, want.Failed, want.Link = true, true, Link{traceID(7), id(9)}
	want.Attributes = []Attribute{{"audit-id", "x"}}
	want.Events = []Event{{"Send raft proposal", 5, []Attribute{{"n", "1"}}}}
	var b bytes.Buffer
	if err := WriteOTLP(&b, []Span{want, span(2, 1, "b", 1, 2)}); err != nil {
		t.Fatal(err)
	}
	var got []Span
	if invalid, err := ReadOTLP(&b, func(s Span) { got = append(got, s) }); err != nil || invalid != 0 || len(got) != 2 {
		t.Fatal(got, invalid, err)
	}
	if fmt.Sprint(got[0]) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got[0], want)
	}
	for _, line := range []string{`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"zz","spanId":""}]}]}]}`, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":18446744073709551615,"attributes":[{"key":"a","value":{"arrayValue":{}}}]}]}]}]}`} {
		if invalid, err := ReadOTLP(strings.NewReader(line), func(Span) { t.Error("took an invalid span") }); err != nil || invalid != 1 {
			t.Errorf("%s: %d, %v", line, invalid, err)
		}
	}
	if _, err := ReadOTLP(strings.NewReader("{}\n{"), nil); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
		t.Error(err)
	}
}
