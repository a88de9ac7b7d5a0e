package spans

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// traced returns a request that took 10 ms or more, and its spans: 1 ms in priority and fairness, 2 ms in a webhook, and
// as many milliseconds in etcd as the argument etcd.
func traced(n int, etcd int64) (Request, []Span) {
	r := Request{Trace: traceID(n), ID: id(1), Load: "news", Verb: "POST", Resource: "configmaps", Due: 0, Sent: 0, Last: (9 + etcd) * ms, Status: 201}
	s := func(n, parent int, process, name string, start, end int64, client bool) Span {
		return Span{Trace: r.Trace, ID: id(n), Parent: id(parent), Process: process, Name: name, Start: start * ms, End: end * ms, Client: client}
	}
	return r, []Span{
		s(2, 1, "kube-apiserver-0", "POST /api/v1", 1, 8+etcd, false),
		s(3, 2, "kube-apiserver-0", "priorityandfairness", 1, 8+etcd, false),
		s(4, 3, "kube-apiserver-0", "Create", 2, 8+etcd, false),
		s(5, 4, "kube-apiserver-0", "Call mutating webhook", 3, 5, false),
		s(6, 5, "kube-apiserver-0", "HTTP POST", 3, 5, true),
		s(7, 4, "kube-apiserver-0", "etcdserverpb.KV/Txn", 6, 6+etcd, true),
		s(8, 7, "etcd-0", "txn", 6, 5+etcd, false),
	}
}

func TestStatisticsOfAllRequests(t *testing.T) {
	k := NewKeeper(Limits{Slowest: 1, Sample: 1}, 1)
	k.BeginPhase("busy", 0)
	const requests = 100
	for n := 1; n <= requests; n++ {
		r, all := traced(n, int64(2+n%3)) // 3 ms on average
		for _, s := range all {
			k.Span(s, 0)
		}
		k.Request(r, 0)
	}
	lacking, all := traced(200, 90)
	k.Span(all[3], 0) // its parent is missing
	k.Request(lacking, 0)
	k.Flush()
	if c := k.Counts(); c.Incomplete != 1 || c.Requests != requests+1 {
		t.Errorf("counts %+v", c)
	}
	parts := k.stats.partRows()
	if len(parts) != 1 || parts[0].Phase != "busy" || parts[0].Load != "news" || parts[0].Requests != requests {
		t.Fatalf("parts %+v", parts)
	}
	for i, want := range []result.SpanPart{{Name: "fairness", Seconds: 0.001}, {Name: "admission", Seconds: 0.002}, {Name: "etcd", Seconds: 0.003, Error: math.Sqrt(2.0/3) / 1e4}} {
		if got := parts[0].Parts[i]; got.Name != want.Name || math.Abs(got.Seconds-want.Seconds) > 1e-4 || math.Abs(got.Error-want.Error) > 1e-6 {
			t.Errorf("part %+v, want %+v", got, want)
		}
	}
	share := 0.0
	for _, row := range k.stats.rows() {
		share += row.Share
		if row.Requests != requests {
			t.Errorf("%s: %d requests", row.Name, row.Requests)
		}
		if row.Name == "txn" && (math.Abs(row.P50-0.002) > 1e-4 || math.Abs(row.P99-0.003) > 1e-4 || math.Abs(row.Critical-0.002) > 1e-4) {
			t.Errorf("%+v", row)
		}
	}
	if math.Abs(share-1) > 1e-9 {
		t.Errorf("the shares of the critical path add up to %g", share)
	}
}

// Validating webhooks are called in parallel. Calls of conversion webhooks and of other API servers are not admission.
func TestTimeOfAdmission(t *testing.T) {
	for name, c := range map[string]struct {
		calls []Span
		want  float64 // seconds
	}{
		"in parallel":           {[]Span{span(3, 2, "Call validating webhook", 10, 40), span(4, 3, "HTTP POST", 12, 39), span(5, 2, "Call validating webhook", 10, 50), span(6, 5, "HTTP POST", 12, 49)}, 0.040},
		"one after the other":   {[]Span{span(3, 2, "Call mutating webhook", 10, 20), span(4, 2, "Call validating webhook", 30, 35)}, 0.015},
		"a webhook with spans":  {[]Span{span(3, 2, "Call mutating webhook", 10, 20), span(4, 3, "HTTP POST", 11, 19), span(5, 4, "review", 12, 18)}, 0.010},
		"a conversion webhook":  {[]Span{span(3, 2, "Call conversion webhook", 10, 40), span(4, 3, "HTTP POST", 12, 39)}, 0},
		"an aggregated API":     {[]Span{span(3, 2, "HTTP GET", 10, 40)}, 0},
		"no call of any server": {nil, 0},
	} {
		k := NewKeeper(Limits{}, 1)
		for i := range c.calls {
			c.calls[i].Client = strings.HasPrefix(c.calls[i].Name, "HTTP ")
		}
		for _, s := range append([]Span{span(2, 1, "PATCH /apis", 5, 90)}, c.calls...) {
			k.Span(s, 0)
		}
		k.Request(Request{Trace: traceID(1), ID: id(1), Load: "l", Verb: "patch", Resource: "things", Last: 100 * ms}, 0)
		k.Flush()
		if rows := k.stats.partRows(); len(rows) != 1 || math.Abs(rows[0].Parts[partAdmission].Seconds-c.want) > 1e-9 {
			t.Errorf("%s: %+v, want %g s", name, rows, c.want)
		}
	}
}

// Names come from other processes, so their number is bounded.
func TestStatisticsAreBounded(t *testing.T) {
	k := NewKeeper(Limits{}, 1)
	for n := range 5000 {
		r := request(n, 5, 200)
		r.Trace[4] = byte(n >> 16)
		r.Resource, r.Load = fmt.Sprint("r", n), fmt.Sprint("l", n)
		s := server(r)
		s.Name = fmt.Sprint("span ", n)
		k.Span(s, 0)
		k.Request(r, 0)
	}
	k.Flush()
	if len(k.stats.names) > maxNames || len(k.stats.requests) > maxNames || len(k.stats.parts) > maxParts || len(k.groups) > k.limits.Groups {
		t.Errorf("%d names, %d requests, %d parts, %d groups", len(k.stats.names), len(k.stats.requests), len(k.stats.parts), len(k.groups))
	}
}

func TestGrown(t *testing.T) {
	names := func(verb string, txn, create float64) []result.SpanName {
		return []result.SpanName{
			{Verb: verb, Resource: "pods", Process: "etcd-0", Name: "txn", Requests: 10, Critical: txn},
			{Verb: verb, Resource: "pods", Process: "kube-apiserver-0", Name: "Create", Requests: 10, Critical: create},
		}
	}
	a := []*result.Traces{nil, {Names: names("POST", 0.010, 0.010)}, {Names: names("POST", 0.012, 0.010)}}
	b := []*result.Traces{{Names: append(names("POST", 0.030, 0.0105), names("PUT", 1, 1)...)}}
	b[0].Names = append(b[0].Names, result.SpanName{Verb: "POST", Resource: "pods", Process: "kube-apiserver-0", Name: "HTTP POST", Requests: 10, Critical: 0.005})
	got := Grown(a, b)
	if len(got) != 2 || got[0].Name != "txn" || math.Abs(got[0].A-0.011) > 1e-9 || got[0].B != 0.03 || got[1].Name != "HTTP POST" || got[1].A != 0 {
		t.Errorf("got %+v", got)
	}
	if got := Grown(nil, b); len(got) != 0 {
		t.Errorf("without traces to compare with: %+v", got)
	}
}
