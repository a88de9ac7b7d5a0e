package truth

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/pace"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
	"github.com/stormglass/stormglass/loadgen/traffic"
	"github.com/stormglass/stormglass/loadgen/traffic/request"
	"github.com/stormglass/stormglass/loadgen/traffic/watch"
)

// one is a set of watches' single object, which the stub has.
type one struct{}

func (one) Prepare(context.Context) error { return nil }
func (one) Len() int                      { return 1 }
func (one) Collection() string            { return "/api/v1/namespaces/storm/configmaps" }

func (o one) AppendPath(b []byte, _ int) []byte { return append(b, o.Collection()+"/x-0"...) }

func (one) AppendPatch(b []byte, _ int, turn int64, key string, value []byte) []byte {
	return fmt.Appendf(b, `{"metadata":{"annotations":{%q:%q}},"data":{"payload":"turn %d"}}`, key, value, turn)
}

// flood is a set of watches and the measured writes to their object.
type flood struct {
	options  stubapi.Options
	encoding string
	count    int // of watches
	writes   int // 20 a second

	result result.Watches
	sent   []stubapi.Watch
	acked  []time.Time // the writes', in order
}

const phase = "truth"

// firstWrite is the version of the first write: the stub begins at 100, and
// its object is 101.
const firstWrite = 102

// run runs it in a bubble.
func (f *flood) run(t *testing.T) {
	t.Helper()
	f.options.Listener = stubapi.NewPipes()
	s, err := stubapi.Start(f.options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Fill("storm", "x", 1, 100, map[string]string{traffic.LoadLabel: "watches"})
	target := traffic.Target{Config: s.Config(), Namespace: "storm", Seed: 1}
	l := scenario.Load{Name: "watches", Kind: "watches", Count: f.count, Rate: 1000, Connect: "shared", Start: "list"}
	l.Resource, l.Encoding, l.Form, l.Objects = "configmaps", f.encoding, "object", 1
	w, err := watch.New(target, l, newPacer(t, "constant", 1000, pace.Shape{}), one{})
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
	<-w.AllOpen()

	l = scenario.Load{Name: "changes", Kind: "changes", Watches: "watches", Rate: 20, MaxInFlight: 1000, Timeout: scenario.Duration(time.Minute)}
	changes, err := watch.NewChanges(target, l, w)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := request.New(target, l, changes, newPacer(t, "constant", 20, pace.Shape{}))
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
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	f.result, f.sent = w.Results()[phase], s.Watches()
	if f.result.Lost != lost {
		t.Errorf("Drain tells %d lost, the results %d", lost, f.result.Lost)
	}
	for _, e := range s.Exchanges() {
		if e.Method == http.MethodPatch {
			f.acked = append(f.acked, e.Answered)
		}
	}
	if len(f.acked) != f.writes {
		t.Fatalf("%d writes of %d", len(f.acked), f.writes)
	}
}

// account is what was really sent.
type account struct{ Expected, Delivered, Lost, Duplicated, Reordered, Lossy, WorstLost int64 }

func (f *flood) truth() account {
	a := account{Expected: int64(f.count) * int64(f.writes)}
	for _, w := range f.sent {
		seen, newest, mine := map[uint64]bool{}, uint64(0), int64(0)
		for _, e := range w.Sent {
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

// latencies are the true ones of all deliveries, from the writes' answers.
func (f *flood) latencies() []time.Duration {
	var all []time.Duration
	for _, w := range f.sent {
		seen := map[uint64]bool{}
		for _, e := range w.Sent {
			if !seen[e.RV] {
				all = append(all, max(e.At.Sub(f.acked[e.RV-firstWrite]), 0))
			}
			seen[e.RV] = true
		}
	}
	slices.Sort(all)
	return all
}

// script spoils a share of the events, drawn by seed, watch and number.
func script(seed uint64, share float64, kinds ...stubapi.Spoil) stubapi.Script {
	return func(k, n int64) stubapi.Spoil {
		r := rand.New(rand.NewPCG(seed, uint64(k)<<32|uint64(n)))
		if r.Float64() >= share {
			return stubapi.Keep
		}
		return kinds[r.IntN(len(kinds))]
	}
}

var encodings = []string{"json", "protobuf"}

// Every gap, duplicate and swap is found, and no other.
func TestEveryGapIsFound(t *testing.T) {
	for _, encoding := range encodings {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("%s %d", encoding, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					share := []float64{0, 0.002, 0.02, 0.3}[seed%4]
					f := flood{encoding: encoding, count: 30, writes: 40, options: stubapi.Options{
						Script:     script(seed, share, stubapi.Drop, stubapi.Double, stubapi.Swap),
						EventDelay: func(int64, int64) time.Duration { return 5 * time.Millisecond },
					}}
					f.run(t)
					if got, want := told(f.result), f.truth(); got != want {
						t.Errorf("told %+v, in truth %+v", got, want)
					}
					if want := f.truth(); share > 0.1 && (want.Lost == 0 || want.Duplicated == 0 || want.Reordered == 0) {
						t.Errorf("nothing was spoilt: %+v", want)
					}
					if f.result.Reconnects != 0 || f.result.Relists != 0 || f.result.Malformed != 0 || f.result.BeforeAck != 0 {
						t.Errorf("told of more than there was: %+v", f.result)
					}
				})
			})
		}
	}
}

// Watches that end, however they end, are resumed where they were: nothing is
// lost, doubled or out of order, and each end is counted.
func TestEndsLoseNothing(t *testing.T) {
	for _, encoding := range encodings {
		for _, spoil := range []stubapi.Spoil{stubapi.End, stubapi.Abort, stubapi.Garble} {
			t.Run(fmt.Sprintf("%s %d", encoding, spoil), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := flood{encoding: encoding, count: 20, writes: 40, options: stubapi.Options{
						Script:     stubapi.Script(func(k, n int64) stubapi.Spoil { return onlyFirst(k, n, spoil) }),
						EventDelay: func(int64, int64) time.Duration { return 5 * time.Millisecond },
					}}
					f.run(t)
					want := account{Expected: 800, Delivered: 800}
					if got := told(f.result); got != want {
						t.Errorf("told %+v, in truth %+v", got, want)
					}
					if f.result.Reconnects != 10 || len(f.sent) != 30 || f.result.Relists != 0 {
						t.Errorf("%d reconnects and %d relists of 10 ends; %d watches were opened", f.result.Reconnects, f.result.Relists, len(f.sent))
					}
					if malformed := f.result.Malformed; spoil == stubapi.Garble && malformed != 10 || spoil != stubapi.Garble && malformed != 0 {
						t.Errorf("%d malformed streams", malformed)
					}
				})
			})
		}
	}
}

// onlyFirst spoils an event of ten of the first 20 watches.
func onlyFirst(k, n int64, spoil stubapi.Spoil) stubapi.Spoil {
	if k < 20 && k%2 == 0 && n == 5+k {
		return spoil
	}
	return stubapi.Keep
}

// A watch that is told 410 lists again, and what it missed by that is lost.
func TestGoneIsRelisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flood{encoding: "json", count: 20, writes: 40, options: stubapi.Options{
			Script: func(k, n int64) stubapi.Spoil { return onlyFirst(k, n, stubapi.Gone) },
			// Long enough that the event told instead of the 410 is in the list.
			EventDelay: func(int64, int64) time.Duration { return 5 * time.Millisecond },
		}}
		f.run(t)
		delivered := int64(0)
		for _, w := range f.sent {
			delivered += int64(len(w.Sent))
		}
		if r := f.result; r.Relists != 10 || r.Expected != 800 || r.Delivered != delivered || r.Lost != 800-delivered || r.Lost < 10 || r.Lossy != 10 {
			t.Errorf("told %+v; in truth %d delivered", r, delivered)
		}
	})
}

func TestDeliveryLatency(t *testing.T) {
	for _, encoding := range encodings {
		for name, delay := range map[string]func(k, n int64) time.Duration{
			"fixed":  func(int64, int64) time.Duration { return 70 * time.Millisecond },
			"spread": func(k, n int64) time.Duration { return time.Duration(50+(k*37+n*101)%450) * time.Millisecond },
			"rare": func(k, n int64) time.Duration {
				if k == 7 && n%5 == 0 {
					return 3 * time.Second
				}
				return 60 * time.Millisecond
			},
		} {
			t.Run(encoding+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := flood{encoding: encoding, count: 50, writes: 60, options: stubapi.Options{EventDelay: delay}}
					f.run(t)
					quantiles(t, "delivery", f.result.Delivery, f.latencies())
				})
			})
		}
	}
}

// Events that come before their write's answer are counted, and have no
// latency.
func TestBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := func(r stubapi.Request) bool { return r.Method == http.MethodPatch }
		f := flood{encoding: "json", count: 10, writes: 20, options: stubapi.Options{
			Policy: stubapi.Only(writes, stubapi.Always(stubapi.Answer{Ack: 20 * time.Millisecond})),
		}}
		f.run(t)
		if r := f.result; r.BeforeAck != 200 || r.Delivered != 200 || r.Lost != 0 || r.Delivery.Max != 0 || r.Delivery.Count != 200 {
			t.Errorf("told %+v", r)
		}
	})
}
