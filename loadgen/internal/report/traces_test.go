package report

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/stormglass/stormglass/internal/browsertest"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// writeTrace is a patch that took 62 ms: 20 ms in a webhook and 31 ms in Raft.
func writeTrace(id, load, phase string) result.Trace {
	const ms, server, etcd = 1e6, "kube-apiserver-0", "etcd-0"
	x := spans.Trace{Request: spans.Request{
		ID: spans.ID{1}, Load: load, Phase: phase, Verb: "patch", Resource: "configmaps", Due: 100 * ms, Sent: 101 * ms, First: 161 * ms, Last: 162 * ms, Status: 200,
	}}
	if _, err := hex.Decode(x.Trace[:], []byte(id)); err != nil {
		panic(err)
	}
	span := func(n, parent byte, process, name string, start, end float64, detail string, events ...spans.Event) {
		x.Spans = append(x.Spans, spans.Span{
			Trace: x.Trace, ID: spans.ID{n}, Parent: spans.ID{parent}, Process: process, Name: name, Start: int64((100 + start) * ms), End: int64((100 + end) * ms),
			Attributes: []spans.Attribute{{Key: "key", Value: detail}}, Events: events,
		})
	}
	event := func(name string, at int64) spans.Event { return spans.Event{Name: name, At: (100 + at) * ms} }
	span(2, 1, server, "PATCH /api/v1/namespaces/{:namespace}/configmaps/{:name}", 2, 59, "")
	span(3, 2, server, "authorization", 2, 59, "")
	span(4, 3, server, "Call mutating webhook", 4, 25, "policy.example.com")
	span(5, 4, server, "HTTP POST", 4, 24, "policy.example.com")
	span(6, 3, server, "audit", 6, 8, "")
	span(7, 3, server, "GuaranteedUpdate etcd3", 25, 59, "/configmaps/ns/a", event("Txn call succeeded", 58))
	span(8, 7, server, "etcdserverpb.KV/Txn", 26, 59, "")
	span(9, 8, etcd, "etcdserverpb.KV/Txn", 26.5, 58.5, "")
	span(10, 9, etcd, "txn", 27, 58, "", event("Send raft proposal", 28), event("Receive raft result", 57))
	return x.Result()
}

// withTraces returns the run with traces of its second load in two phases, and the life of a pod.
func withTraces(r result.Result, phases ...string) result.Result {
	failed := writeTrace("aa22bb33cc44dd55ee66ff7788990011", "patch-configmap", phases[0])
	failed.Status, failed.Spans[0].Failed, failed.Spans[2].Failed = 503, true, true
	r.Traces = &result.Traces{
		Sampled: .05, Requests: 1204, Kept: 76, Spans: 15312, Incomplete: 2, Dropped: map[string]int64{"spans above the memory limit": 12},
		Names:   []result.SpanName{{Verb: "patch", Resource: "configmaps", Process: "etcd-0", Name: "txn", Count: 20, Requests: 20, P50: .011, P99: .031, Critical: .4, Share: .52}, {Verb: "patch", Resource: "configmaps", Process: "kube-apiserver-0", Name: "HTTP POST", Count: 20, Requests: 20, P50: .02, P99: .022, Critical: .4, Share: .31}},
		Slowest: []result.Trace{writeTrace("1f2e3d4c5b6a79881726354453627180", "patch-configmap", phases[1]), failed},
		Pods: []result.PodLife{{Pod: "stormglass-3f9a/web-6d5f7c9b8d-x2x7k", Seconds: 2.4, Writes: []result.PodWrite{
			{What: "PATCH deployments", Client: "loadgen", Start: 0, Seconds: .012, Trace: "1f2e3d4c5b6a79881726354453627180"},
			{What: "POST replicasets", Client: "deployment-controller", Start: .02, Seconds: .008, Trace: "0b1c2d3e4f5061728394a5b6c7d8e9f0"},
			{What: "POST pods", Client: "replicaset-controller", Start: .045, Seconds: .009, Trace: "1b1c2d3e4f5061728394a5b6c7d8e9f0"},
			{What: "POST pods/binding", Client: "kube-scheduler", Start: .31, Seconds: .014, Trace: "2b1c2d3e4f5061728394a5b6c7d8e9f0"},
			{What: "PATCH pods/status", Client: "kubelet", Start: 2.2, Seconds: .06, Trace: "3b1c2d3e4f5061728394a5b6c7d8e9f0"},
			{What: "PUT endpointslices", Client: "endpointslice-controller", Start: 2.37, Seconds: .03},
		}}},
	}
	return r
}

// golden compares what write writes with testdata/NAME.txt, at two widths. No line is longer than the width.
func golden(t *testing.T, name string, write func(io.Writer, TerminalOptions) error) {
	t.Helper()
	var all strings.Builder
	for _, width := range []int{80, 120} {
		var out strings.Builder
		if err := write(&out, TerminalOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := terminal.TextWidth(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%s: a line has %d columns of %d: %s", name, n, width, line)
			}
		}
		fmt.Fprintf(&all, "%d columns:\n\n%s\n", width, &out)
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if all.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s(go test -run TestTracesInTerminal -update rewrites it)", &all, want)
	}
}

func TestTracesInTerminal(t *testing.T) {
	traces := withTraces(stormRun(), "steady", "storm").Traces
	golden(t, "traces", func(w io.Writer, o TerminalOptions) error {
		return Traces(w, TraceList{Shown: traces.Slowest, Kept: 76, Pods: traces.Pods}, o)
	})
	golden(t, "waterfall", func(w io.Writer, o TerminalOptions) error { return TraceWaterfall(w, traces.Slowest[1], o) })
	golden(t, "podlife", func(w io.Writer, o TerminalOptions) error { return PodLife(w, traces.Pods[0], o) })
	var none strings.Builder
	if err := Traces(&none, TraceList{Kept: 76}, TerminalOptions{}); err != nil || none.String() != "0 of 76 kept traces, the slowest first\n" {
		t.Errorf("%q, %v", &none, err)
	}
}

// A failed latency gate leads to the slowest trace of the requests that it judges.
func TestTraceOfGate(t *testing.T) {
	r := withTraces(stormRun(), "steady", "storm")
	failed := func(objective, phase, load string) result.Gate {
		g := gate("slow", objective, result.Fail, ptr(1.84), "<=", 1, scenario.Seconds, "steady", "storm")
		g.WorstPhase, g.WorstLoad = phase, load
		return g
	}
	passed, unjudged := failed("request-latency", "", ""), failed("request-latency", "steady", "")
	passed.Verdict = result.Pass
	unjudged.Verdict, unjudged.Value, unjudged.Withheld = result.NoData, nil, ptr(2)
	for name, c := range map[string]struct {
		gate  result.Gate
		phase string // of the trace; empty: none
	}{
		"any phase and load":           {failed("request-latency", "", ""), "storm"},
		"phase":                        {failed("request-latency", "steady", "patch-configmap"), "steady"},
		"other load":                   {failed("request-latency", "steady", "news"), ""},
		"metric of the API server":     {failed("mutating-latency", "storm", ""), "storm"},
		"no trace with its verb":       {failed("list-latency", "storm", ""), ""},
		"not the latency of requests":  {failed("phase-duration", "storm", ""), ""},
		"passed":                       {passed, ""},
		"measured, but not judged":     {unjudged, "steady"},
		"a phase that has no trace":    {failed("request-latency", "recovery", ""), ""},
		"over phases, none is slowest": {gate("x", "request-latency", result.Fail, ptr(2), "<=", 1, scenario.Seconds, "steady"), "steady"},
	} {
		if x, ok := traceOf(r, c.gate); ok != (c.phase != "") || x.Phase != c.phase {
			t.Errorf("%s: a trace of phase %q, %t; want %q", name, x.Phase, ok, c.phase)
		}
	}
	if _, ok := traceOf(stormRun(), failed("request-latency", "", "")); ok {
		t.Error("a run without traces has one")
	}
	other := withTraces(stormRun(), "steady", "storm")
	for i := range other.Traces.Slowest {
		other.Traces.Slowest[i].Client, other.Traces.Slowest[i].Load = "kubelet", ""
	}
	if x, ok := traceOf(other, failed("request-latency", "", "")); ok {
		t.Errorf("the gate judges loads, but leads to a request of %s", x.Client)
	}
	got := summary(t, r, TerminalOptions{Dir: "runs/x y"})
	if want := "loadgen trace 'runs/x y' --phase storm --load patch-configmap\n"; !strings.Contains(got, want) {
		t.Errorf("the summary lacks %q:\n%s", want, got)
	}
	if got := summary(t, stormRun(), TerminalOptions{Dir: "runs/x"}); strings.Contains(got, "loadgen trace") {
		t.Errorf("a run without traces names the command:\n%s", got)
	}
}

// Each link to a trace has its target: from charts, the failed gate and writes of pods.
func TestLinksToTraces(t *testing.T) {
	r := withTraces(stormRun(), "steady", "storm")
	page := render(t, r, recording{result: r})
	links := regexp.MustCompile(`<a href="#(trace-[^"]*)">([^<]*)<`).FindAllStringSubmatch(page, -1)
	texts := map[string]int{}
	for _, l := range links {
		texts[l[2]]++
		if n := strings.Count(page, ` id="`+l[1]+`"`); n != 1 {
			t.Errorf("%d elements with the ID %s", n, l[1])
		}
	}
	if texts["slowest trace"] != 1 || texts["storm"] < 3 || texts["steady"] != texts["storm"] || texts["trace 1f2e3d4c"] != 1 {
		t.Errorf("links: %v", texts)
	}
	for _, want := range []string{"<code>loadgen trace DIR 2b1c2d3e</code>", `title="28 ms Send raft proposal"`, "76 of 1,204 traced requests were kept"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if page := render(t, stormRun(), recording{result: stormRun()}); strings.Contains(page, "#trace-") || strings.Contains(page, "Slow requests") {
		t.Error("a run without traces shows some")
	}
}

// A link to a folded trace unfolds it, without script.
func TestLinkUnfoldsTrace(t *testing.T) {
	r := withTraces(stormRun(), "steady", "storm")
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(render(t, r, recording{result: r})), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := browsertest.Start(t)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 860), chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	const open = `[...document.querySelectorAll('.traces details')].map(d => d.open)`
	if got := browsertest.Must(t, ctx, chromedp.Evaluate[[]bool](open)); !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("at first, open: %v", got)
	}
	browsertest.Must(t, ctx, chromedp.Evaluate[bool](`([...document.querySelectorAll('.chart a')].find(a => a.textContent === 'steady').click(), true)`))
	if got := browsertest.Must(t, ctx, chromedp.Evaluate[[]bool](open)); !slices.Equal(got, []bool{true, true, true}) {
		t.Errorf("after a click on the link to the second trace, open: %v", got)
	}
}
