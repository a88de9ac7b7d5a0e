package accuracy

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
)

// script returns a Script that spoils the given fraction of the events, in one of the given ways. The seed, the watch
// and the event's number determine which events.
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

// The results report exactly the gaps, duplicates and swaps that the script made.
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
						t.Errorf("reported %+v, want %+v", got, want)
					}
					if want := f.truth(); share > 0.1 && (want.Lost == 0 || want.Duplicated == 0 || want.Reordered == 0) {
						t.Errorf("nothing was spoilt: %+v", want)
					}
					if f.result.Reconnects != 0 || f.result.Relists != 0 || f.result.Malformed != 0 || f.result.BeforeAck != 0 {
						t.Errorf("results report events that did not happen: %+v", f.result)
					}
				})
			})
		}
	}
}

// Watches that end, however they end, are resumed where they were: nothing is lost, doubled or out of order, and each
// end is counted.
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
						t.Errorf("reported %+v, want %+v", got, want)
					}
					if f.result.Reconnects != 10 || len(f.sent) != 30 || f.result.Relists != 0 {
						t.Errorf("%d reconnects and %d relists of 10 ends; %d watches were opened", f.result.Reconnects, f.result.Relists, len(f.sent))
					}
					if malformed := f.result.Malformed; spoil == stubapi.Garble && malformed != 10 || spoil != stubapi.Garble && malformed != 0 {
						t.Errorf("got %d malformed streams", malformed)
					}
				})
			})
		}
	}
}

// onlyFirst spoils one event on every other one of the first 20 watches.
func onlyFirst(k, n int64, spoil stubapi.Spoil) stubapi.Spoil {
	if k < 20 && k%2 == 0 && n == 5+k {
		return spoil
	}
	return stubapi.Keep
}

// A watch that receives a 410 lists again. The events that it missed are lost.
func TestGoneIsRelisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flood{encoding: "json", count: 20, writes: 40, options: stubapi.Options{
			Script: func(k, n int64) stubapi.Spoil { return onlyFirst(k, n, stubapi.Gone) },
			// The delay is so long that the list contains the event that the 410 replaces.
			EventDelay: func(int64, int64) time.Duration { return 5 * time.Millisecond },
		}}
		f.run(t)
		delivered := int64(0)
		for _, w := range f.sent {
			delivered += int64(len(w.Sent))
		}
		if r := f.result; r.Relists != 10 || r.Expected != 800 || r.Delivered != delivered || r.Lost != 800-delivered || r.Lost < 10 || r.Lossy != 10 {
			t.Errorf("reported %+v, want %d delivered", r, delivered)
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

// Events that arrive before their write's response are counted and have no latency.
func TestBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := func(r stubapi.Request) bool { return r.Method == http.MethodPatch }
		f := flood{encoding: "json", count: 10, writes: 20, options: stubapi.Options{
			Policy: stubapi.Only(writes, stubapi.Always(stubapi.Answer{Ack: 20 * time.Millisecond})),
		}}
		f.run(t)
		if r := f.result; r.BeforeAck != 200 || r.Delivered != 200 || r.Lost != 0 || r.Delivery.Max != 0 || r.Delivery.Count != 200 {
			t.Errorf("results = %+v, want 200 deliveries before their acknowledgements", r)
		}
	})
}
