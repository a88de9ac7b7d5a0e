package accuracy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/load/watch"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// one is the stub's first object, which the test writes.
type one struct{}

func (one) Prepare(context.Context) error { return nil }
func (one) Len() int                      { return 1 }
func (one) Collection() string            { return "/api/v1/namespaces/storm/configmaps" }

func (o one) AppendPath(b []byte, _ int) []byte { return append(b, o.Collection()+"/x-0"...) }

func (one) AppendPatch(b []byte, _ int, turn int64, key string, value []byte) []byte {
	return fmt.Appendf(b, `{"metadata":{"annotations":{%q:%q}},"data":{"payload":"turn %d"}}`, key, value, turn)
}

// flood is a set of watches and the measured writes to one of the objects that they watch.
type flood struct {
	options  stubapi.Options
	encoding string
	count    int // number of watches
	writes   int // number of writes; 20 per second
	objects  int // default 1
	// opening is the number of watches opened per second; default 1000. early means that the writes begin together with
	// the watches, not after all watches are open.
	opening float64
	early   bool
	// change changes the load of watches. wrap replaces its dial function.
	change func(*scenario.Load)
	wrap   func(dialFunc) dialFunc

	result    result.Watches
	sent      []stubapi.Watch
	exchanges []stubapi.Exchange
	acked     []time.Time // when each write was acknowledged, in order
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

const phase = "truth"

// firstWrite is the version of the first write. The stub's versions begin after 100, and each object takes one.
func (f *flood) firstWrite() uint64 { return uint64(101 + f.objects) }

// run runs the flood in a synctest bubble.
func (f *flood) run(t *testing.T) {
	t.Helper()
	if f.objects == 0 {
		f.objects = 1
	}
	if f.opening == 0 {
		f.opening = 1000
	}
	f.options.Listener = stubapi.NewPipes()
	s, err := stubapi.Start(f.options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Fill("storm", "x", f.objects, 100, map[string]string{load.LoadLabel: "watches"})
	target := load.Target{Config: s.Config(), Namespace: "storm", Seed: 1}
	l := scenario.Load{Name: "watches", Kind: "watches", Count: f.count, Rate: scenario.Rate(f.opening), Connect: "shared", Start: "list"}
	l.Resource, l.Encoding, l.Form, l.Objects = "configmaps", f.encoding, "object", 1
	if f.change != nil {
		f.change(&l)
	}
	watched := target
	if f.wrap != nil {
		watched.Config = rest.CopyConfig(target.Config)
		watched.Config.Dial = f.wrap(target.Config.Dial)
	}
	w, err := watch.New(watched, l, newPacer(t, "constant", f.opening, arrival.Shape{}), one{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.BeginPhase(phase, time.Now())
	watching, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(watching) }()
	if !f.early {
		<-w.AllOpen()
	}

	l = scenario.Load{Name: "changes", Kind: "changes", Watches: "watches", Rate: 20, MaxInFlight: 1000, Timeout: scenario.Duration(time.Minute)}
	changes, err := watch.NewChanges(target, l, w)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := request.New(target, l, changes, newPacer(t, "constant", 20, arrival.Shape{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	writing, cancel := context.WithTimeout(t.Context(), time.Duration(f.writes)*50*time.Millisecond)
	defer cancel()
	if err := writer.Run(writing); err != nil {
		t.Fatal(err)
	}
	lost, err := w.Drain(t.Context(), 90*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	<-w.AllOpen()
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	f.result, f.sent, f.exchanges = w.Results()[phase], s.Watches(), s.Exchanges()
	if f.result.Lost != lost {
		t.Errorf("Drain returns %d lost, but the results have %d", lost, f.result.Lost)
	}
	for _, e := range f.exchanges {
		if e.Method == http.MethodPatch {
			f.acked = append(f.acked, e.Answered)
		}
	}
	if len(f.acked) != f.writes {
		t.Fatalf("%d of %d writes were acknowledged", len(f.acked), f.writes)
	}
}

// modified is the kind of the measured writes' events.
const modified = "MODIFIED"

// account holds the counts of deliveries that the tests compare: those that the stub sent (truth) and those in the
// results (told).
type account struct{ Expected, Delivered, Lost, Duplicated, Reordered, Lossy, WorstLost int64 }

func (f *flood) truth() account {
	a := account{Expected: int64(f.count) * int64(f.writes)}
	for _, w := range f.sent {
		seen, newest, mine := map[uint64]bool{}, uint64(0), int64(0)
		for _, e := range w.Sent {
			if e.Kind != modified {
				continue
			}
			switch {
			case seen[e.RV]:
				a.Duplicated++
			case e.RV < newest:
				a.Reordered++
				mine++
			default:
				mine++
			}
			seen[e.RV], newest = true, max(newest, e.RV)
		}
		a.Delivered += mine
		if lost := int64(f.writes) - mine; lost > 0 {
			a.Lossy++
			a.WorstLost = max(a.WorstLost, lost)
		}
	}
	a.Lost = a.Expected - a.Delivered
	return a
}

func told(r result.Watches) account {
	return account{r.Expected, r.Delivered, r.Lost, r.Duplicated, r.Reordered, int64(r.Lossy), r.WorstLost}
}

// latencies returns the true latencies of all deliveries, from the responses to their writes.
func (f *flood) latencies() []time.Duration {
	var all []time.Duration
	for _, w := range f.sent {
		seen := map[uint64]bool{}
		for _, e := range w.Sent {
			if e.Kind == modified && !seen[e.RV] {
				all = append(all, max(e.At.Sub(f.acked[e.RV-f.firstWrite()]), 0))
			}
			seen[e.RV] = true
		}
	}
	slices.Sort(all)
	return all
}
