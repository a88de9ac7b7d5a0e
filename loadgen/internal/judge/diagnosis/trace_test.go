package diagnosis

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The request of a cause's trace was due while the cause lasted, and waited for the cause's span.
func TestTraceOfACause(t *testing.T) {
	began := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	trace := func(n byte, at, fsync, webhook time.Duration) spans.Trace {
		due := began.Add(at).UnixNano()
		x := spans.Trace{Request: spans.Request{Trace: spans.TraceID{n}, ID: spans.ID{n}, Load: "l", Verb: "POST", Resource: "pods", Due: due, Sent: due, Last: due + int64(fsync+webhook)}}
		x.Spans = []spans.Span{
			{ID: spans.ID{n, 1}, Parent: x.ID, Process: "kube-apiserver-0", Name: "HTTP POST", Start: due, End: due + int64(webhook)},
			{ID: spans.ID{n, 2}, Parent: x.ID, Process: "etcd-0", Name: "txn", Start: due + int64(webhook), End: x.Last},
		}
		return x
	}
	causes := []result.Cause{
		{Kind: "slow-wal-fsync", Began: began, Ended: began.Add(time.Minute)}, {Kind: "webhook-slow", Began: began}, {Kind: "killed", Began: began}, {Kind: "fairness", Began: began},
	}
	AddTraces(causes, []spans.Trace{
		trace(1, -time.Second, time.Second, 0), trace(2, time.Second, 30*time.Millisecond, time.Millisecond), trace(3, 2*time.Second, 20*time.Millisecond, time.Millisecond),
		trace(4, 2*time.Minute, 500*time.Millisecond, 300*time.Millisecond), trace(5, time.Second, 500*time.Millisecond, 100*time.Millisecond),
	})
	for i, want := range []byte{5, 4, 0, 0} {
		got := byte(0)
		if c := causes[i].Trace; c != nil {
			for n := range byte(6) {
				if (spans.TraceID{n}).String() == c.ID {
					got = n
				}
			}
		}
		if got != want {
			t.Errorf("%s: trace %d, want %d", causes[i].Kind, got, want)
		}
	}
	if c := causes[0].Trace; c.Span != "etcd-0 txn" || c.Critical != 0.5 || c.Seconds != 0.6 || c.Request != "POST pods" {
		t.Errorf("%+v", c)
	}
}
