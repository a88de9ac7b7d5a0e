package accuracy

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

var starts = []string{"list", "watchList"}

func startingWith(start string) func(*scenario.Load) {
	return func(l *scenario.Load) { l.Start = start }
}

// lists returns the number of requests for lists that the stub received.
func (f *flood) lists() (n int) {
	for _, e := range f.exchanges {
		if e.Method == http.MethodGet && !e.Watch {
			n++
		}
	}
	return n
}

// modified returns the number of events of writes that the stub sent.
func (f *flood) modified() (n int64) {
	for _, w := range f.sent {
		for _, e := range w.Sent {
			if e.Kind == modified {
				n++
			}
		}
	}
	return n
}

// Watches that are opened during writes must deliver exactly the writes after the version from which they start. The end of the
// initial events causes no false gap or duplicate.
func TestStartsAmongWrites(t *testing.T) {
	for _, encoding := range encodings {
		for _, start := range starts {
			t.Run(encoding+" "+start, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const count, objects = 40, 5
					f := flood{
						encoding: encoding, count: count, writes: 60, objects: objects, opening: 20, early: true,
						change: startingWith(start),
						options: stubapi.Options{
							EventDelay: func(k, n int64) time.Duration { return time.Duration((k*7+n*13)%90) * time.Millisecond },
							Policy:     stubapi.Only(func(r stubapi.Request) bool { return r.Watch }, stubapi.Fixed(30*time.Millisecond)),
						},
					}
					f.run(t)
					sent := f.modified()
					if got, want := told(f.result), (account{Expected: sent, Delivered: sent}); got != want {
						t.Errorf("reported %+v, want %+v", got, want)
					}
					if sent < count || sent >= count*60 {
						t.Errorf("%d events of writes were sent: all or none of the watches were opened among the writes", sent)
					}
					lists, events, bookmarks := 1, sent, int64(0)
					if start == "watchList" {
						lists, events, bookmarks = 0, sent+count*(objects+1), count
					}
					if f.lists() != lists || f.result.Events != events || f.result.Bookmarks != bookmarks {
						t.Errorf("%d lists, %d events, %d bookmarks; want %d, %d, %d",
							f.lists(), f.result.Events, f.result.Bookmarks, lists, events, bookmarks)
					}
					if r := f.result; r.Reconnects+r.Relists+r.Malformed+r.Failed != 0 || r.Open != count || len(f.sent) != count {
						t.Errorf("results report events that did not happen: %+v", r)
					}
				})
			})
		}
	}
}

// No initial event counts as expected. All faults after the initial events are found.
func TestEveryGapAfterInitialEventsIsFound(t *testing.T) {
	for _, encoding := range encodings {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("%s %d", encoding, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const objects = 5
					initial := script(seed, 0.5, stubapi.Drop, stubapi.Double)
					writes := script(seed, 0.2, stubapi.Drop, stubapi.Double, stubapi.Swap)
					f := flood{
						encoding: encoding, count: 30, writes: 40, objects: objects, change: startingWith("watchList"),
						options: stubapi.Options{
							Script: func(k, n int64) stubapi.Spoil {
								if n < objects {
									return initial(k, n)
								}
								return writes(k, n)
							},
							EventDelay: func(int64, int64) time.Duration { return 5 * time.Millisecond },
						},
					}
					f.run(t)
					want := f.truth()
					if got := told(f.result); got != want {
						t.Errorf("reported %+v, want %+v", got, want)
					}
					if want.Lost == 0 || want.Duplicated == 0 || want.Reordered == 0 {
						t.Errorf("nothing was spoilt: %+v", want)
					}
				})
			})
		}
	}
}

// With connect: each, every watch has its own connection. With connect: shared, there are as few connections as the server's
// limit of streams allows.
func TestConnections(t *testing.T) {
	for connect, want := range map[string]int{"each": 45, "shared": 5} {
		for _, start := range starts {
			t.Run(connect+" "+start, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := flood{
						encoding: "protobuf", count: 45, writes: 20, options: stubapi.Options{MaxStreams: 10},
						change: func(l *scenario.Load) { l.Start, l.Connect = start, connect },
					}
					f.run(t)
					watches := map[int]int{} // by connection
					for _, w := range f.sent {
						watches[w.Conn]++
					}
					if len(watches) != want || len(f.sent) != 45 {
						t.Errorf("%d watches on %d connections, want 45 on %d", len(f.sent), len(watches), want)
					}
					if got, want := told(f.result), (account{Expected: 900, Delivered: 900}); got != want {
						t.Errorf("reported %+v, want %+v", got, want)
					}
				})
			})
		}
	}
}
