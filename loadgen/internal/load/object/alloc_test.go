package object

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// cycles are the loads whose requests the tests process, by name.
var cycles = map[string]func(*scenario.Load){
	"get":    func(l *scenario.Load) { l.Verb = "get" },
	"list":   func(l *scenario.Load) { l.Verb, l.Limit = "list", 10 },
	"pages":  func(l *scenario.Load) { l.Verb, l.Limit, l.AllPages = "list", 10, true },
	"create": func(l *scenario.Load) { l.Verb = "create" },
	"update": func(l *scenario.Load) { l.Verb = "update" },
	"patch":  func(l *scenario.Load) { l.Verb = "patch" },
	"apply":  func(l *scenario.Load) { l.Verb, l.Resource = "apply", "leases.coordination.k8s.io" },
	"any":    func(l *scenario.Load) { l.Verb, l.Resource = "get", "pods" },
	"mix": func(l *scenario.Load) {
		l.Mix = []scenario.Operation{{Verb: "get", Weight: 5}, {Verb: "patch"}, {Verb: "list", ResourceVersion: "0"}, {Verb: "create", Resource: "pods"}}
		l.Tenants = []scenario.Tenant{{Name: "a", Share: 2}, {Name: "b", Share: 1}}
		l.Sizes = []scenario.SizeShare{{Size: 100, Weight: 9}, {Size: 10_000, Weight: 1}}
	},
}

// cycle processes one request and its response, which arrives in pieces.
func cycle(t testing.TB, op request.Operation, r *request.Request, n int64, pieces [][]byte) {
	r.N, r.Path, r.Body = n, r.Path[:0], r.Body[:0]
	if !op.Next(n, r) {
		t.Fatal("unsent")
	}
	for again := true; again; {
		for _, p := range pieces {
			if err := op.Data(r, 200, p); err != nil {
				t.Fatal(err)
			}
		}
		if err := op.Data(r, 200, nil); err != nil {
			t.Fatal(err)
		}
		pieces = lastPage
		again = op.Done(r, load.Outcome(200), a0)
	}
}

var lastPage = [][]byte{[]byte(`{"kind":"List","metadata":{"resourceVersion":"8"},"items":[]}`)}

var somePage = [][]byte{
	[]byte(`{"kind":"List","metadata":{"resourceVersion":"7","cont`), []byte(`inue":"abcdefghijklmnopqrstuvwxyz"},"items":[{"a":`),
	[]byte(`[1,2.5e3,null,"x\n` + strings.Repeat("y", 500) + `"]}]}`),
}

func preparedFor(t testing.TB, change func(*scenario.Load)) request.Operation {
	s := newStub(t, nil)
	op, err := NewOperation(s.target(), newLoad(change))
	must(t, err)
	must(t, op.Prepare(t.Context()))
	return op
}

// A request allocates nothing once its buffers have grown.
func TestNoAllocations(t *testing.T) {
	for name, change := range cycles {
		t.Run(name, func(t *testing.T) {
			op := preparedFor(t, change)
			var r request.Request
			n := int64(0)
			for ; n < 200; n++ {
				cycle(t, op, &r, n, somePage)
			}
			allocs := testing.AllocsPerRun(500, func() {
				cycle(t, op, &r, n, somePage)
				n++
			})
			if allocs > 0 {
				t.Errorf("got %v allocations for each request", allocs)
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	for name, change := range cycles {
		b.Run(name, func(b *testing.B) {
			op := preparedFor(b, change)
			var r request.Request
			b.ReportAllocs()
			n := int64(0)
			for b.Loop() {
				r.Path, r.Body = r.Path[:0], r.Body[:0]
				if !op.Next(n, &r) {
					b.Fatal("unsent")
				}
				op.Done(&r, load.TimedOut, a0)
				n++
			}
		})
	}
}
