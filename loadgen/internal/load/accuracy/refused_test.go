package accuracy

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// A refused watch is a failed attempt, which is counted once, and is retried until it is accepted. Before that it need not
// deliver anything, and no event is lost.
func TestRefusedWatches(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer stubapi.Answer
		wait   float64 // minimum wait before the next attempt, in seconds
		kind   string
	}{
		{"429", stubapi.Answer{Status: 429, RetryAfter: 5 * time.Second}, 5, "429"},
		{"500", stubapi.Answer{Status: 500}, backoff, "500"},
		{"403", stubapi.Answer{Status: 403}, backoff, "403"},
		{"a reset", stubapi.Answer{Fault: stubapi.Reset}, backoff, "reset"},
		{"GOAWAY", stubapi.Answer{Fault: stubapi.GoAway}, 0, "goaway"}, // the next attempt immediately uses another connection
		{"a hangup", stubapi.Answer{Fault: stubapi.Hangup}, backoff, "reset"},
	} {
		for _, encoding := range encodings {
			t.Run(c.name+" "+encoding, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					refused := func(r stubapi.Request) bool { return r.Watch && r.N < 30 && r.N%3 == 1 }
					f := flood{
						encoding: encoding, count: 20, writes: 40,
						options: stubapi.Options{Policy: stubapi.Only(refused, stubapi.Always(c.answer))},
						// Then the end of a connection affects only one watch.
						change: func(l *scenario.Load) { l.Connect = "each" },
					}
					f.run(t)
					f.checkRefused(t, 10, c.wait)
					if n := f.result.Failures[c.kind]; n != 10 {
						t.Errorf("failures by kind: %v, want 10 of %q", f.result.Failures, c.kind)
					}
					asked := 0
					for _, e := range f.exchanges {
						if e.Watch {
							asked++
						}
					}
					if asked != 30 {
						t.Errorf("%d requests for watches, want 20 and 10 that were refused", asked)
					}
				})
			})
		}
	}
}

// backoff is client-go's first backoff, in seconds.
const backoff = 0.8

// checkRefused checks that the given number of attempts failed, that the results report no other fault, and that the
// next attempts waited.
func (f *flood) checkRefused(t *testing.T, failed int64, wait float64) {
	t.Helper()
	if r := f.result; r.Failed != failed || r.Reconnects+r.Relists+r.Malformed != 0 || r.Open != f.count {
		t.Errorf("%d failed attempts, in truth %d, and nothing else: %+v", r.Failed, failed, r)
	}
	all := int64(f.count * f.writes)
	if got, want := told(f.result), (account{Expected: all, Delivered: all}); got != want {
		t.Errorf("reported %+v, want %+v", got, want)
	}
	if l := f.result.OpenLatency; l.Count != int64(f.count) || l.Max < wait {
		t.Errorf("%d openings, the slowest of %v s, want %v at least", l.Count, l.Max, wait)
	}
}

// A shared connection that receives a GOAWAY keeps its watches and accepts no new ones. The remaining watches share the
// next connection.
func TestGoAwayOfASharedConnection(t *testing.T) {
	for _, encoding := range encodings {
		t.Run(encoding, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				eighth := func(r stubapi.Request) bool { return r.Watch && r.N == 8 } // after the list and seven watches
				f := flood{
					encoding: encoding, count: 20, writes: 40,
					options: stubapi.Options{Policy: stubapi.Only(eighth, stubapi.Always(stubapi.Answer{Fault: stubapi.GoAway}))},
				}
				f.run(t)
				f.checkRefused(t, 1, 0)
				watches := map[int]int{} // by connection
				for _, w := range f.sent {
					watches[w.Conn]++
				}
				first := f.sent[0].Conn
				if len(watches) != 2 || watches[first] != 7 {
					t.Errorf("watches by connection: %v; want 7 on the connection with the GOAWAY and 13 on another", watches)
				}
			})
		})
	}
}

// A refused connection counts as a failed attempt, and the watch is retried.
func TestRefusedConnections(t *testing.T) {
	for _, encoding := range encodings {
		t.Run(encoding, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dialled, refused atomic.Int64
				f := flood{
					encoding: encoding, count: 20, writes: 40,
					change: func(l *scenario.Load) { l.Connect = "each" },
					wrap: func(dial dialFunc) dialFunc {
						return func(ctx context.Context, network, address string) (net.Conn, error) {
							// Do not refuse the first connection, which is for the list from which all watches start.
							if n := dialled.Add(1); n < 30 && n%3 == 2 {
								refused.Add(1)
								return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
							}
							return dial(ctx, network, address)
						}
					},
				}
				f.run(t)
				if got := fmt.Sprint(dialled.Load(), " ", refused.Load()); got != "31 10" {
					t.Errorf("dialled and refused: %s; want 20 watches, 10 refusals and the list", got)
				}
				f.checkRefused(t, 10, backoff)
			})
		})
	}
}
