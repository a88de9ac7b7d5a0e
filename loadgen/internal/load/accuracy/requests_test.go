package accuracy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
)

func TestQuantiles(t *testing.T) {
	ms := time.Millisecond
	for name, policy := range map[string]stubapi.Policy{
		"fixed":   stubapi.Fixed(50 * ms),
		"bimodal": stubapi.Bimodal(50*ms, 500*ms, 0.05, 3),
		"rare":    stubapi.Bimodal(80*ms, 2000*ms, 0.005, 3),
		"spread": func(r stubapi.Request) stubapi.Answer {
			return stubapi.Answer{After: time.Duration(50+r.N*37%450) * ms}
		},
	} {
		for _, arrivals := range []string{"constant", "poisson"} {
			t.Run(name+" "+arrivals, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					x := experiment{
						pipes: true, pacer: newPacer(t, arrivals, 400, arrival.Shape{}), length: 10 * time.Second,
						policy: func(time.Time) stubapi.Policy { return policy },
					}
					x.run(t)
					quantiles(t, "latency", x.result.Latency, x.latencies(t))
					if x.result.Lag.Max > 0.002 || x.result.Unsent != 0 {
						t.Errorf("lag %v s, %d unsent on an idle machine", x.result.Lag.Max, x.result.Unsent)
					}
				})
			})
		}
	}
}

// A stall of 2 s within 20 s: a tenth of the arrivals fall into the stall and wait for its end. The expected values are
// computed from the schedule alone.
func TestStallIsFullyVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const base = 50 * time.Millisecond
		begin, end := 8*time.Second, 10*time.Second
		x := experiment{
			pipes: true, pacer: newPacer(t, "constant", 200, arrival.Shape{}), length: 20 * time.Second,
			policy: func(at time.Time) stubapi.Policy { return stubapi.Stall(base, at.Add(begin), at.Add(end)) },
		}
		x.run(t)
		var expected []time.Duration
		for n := range x.pacer.Due(x.length - 1) {
			at := x.pacer.At(n)
			answered := at + base
			if answered >= begin && answered < end {
				answered = end
			}
			expected = append(expected, answered-at)
		}
		slices.Sort(expected)
		quantiles(t, "latency", x.result.Latency, expected)
		if x.result.Latency.P99 < 1.7 {
			t.Errorf("a stall of 2 s results in a p99 of %v s", x.result.Latency.P99)
		}
		if x.result.Offered != 4000 || x.result.Sent != 4000 {
			t.Errorf("offered %d, sent %d; want 4000: the rate must not fall", x.result.Offered, x.result.Sent)
		}
	})
}

// With few slots, most arrivals in the stall are unsent, and counted as such.
func TestOfferedIsSentAndUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := experiment{
			pipes: true, pacer: newPacer(t, "poisson", 300, arrival.Shape{}), length: 10 * time.Second, inFlight: 100,
			policy: func(at time.Time) stubapi.Policy {
				return stubapi.Stall(50*time.Millisecond, at.Add(4*time.Second), at.Add(6*time.Second))
			},
		}
		x.run(t)
		due, received := x.pacer.Due(x.length-1), int64(len(x.exchanges))
		if r := x.result; r.Offered != due || r.Sent != received || r.Unsent != due-received || r.Unsent < 400 || r.Succeeded != r.Sent {
			t.Errorf("offered %d, sent %d, unsent %d, succeeded %d; %d were due, %d received",
				r.Offered, r.Sent, r.Unsent, r.Succeeded, due, received)
		}
		quantiles(t, "latency", x.result.Latency, x.latencies(t))
	})
}

// The server receives each arrival at its scheduled time, within the millisecond in which the dispatcher collects arrivals.
func TestArrivals(t *testing.T) {
	for name, shape := range map[string]arrival.Shape{
		"steady": {},
		"ramp":   {Kind: "ramp", To: 1000, Over: 4 * time.Second},
		"step":   {Kind: "step", To: 600, Steps: 3, Every: time.Second},
		"burst":  {Kind: "burst", Burst: 50, Every: time.Second},
		"sine":   {Kind: "sine", Amplitude: 1, Every: 2 * time.Second},
		"replay": {Kind: "replay", Speed: 2, Times: []float64{0, 0.1, 0.1, 0.1001, 3, 7.5}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := experiment{pipes: true, pacer: newPacer(t, "poisson", 200, shape), length: 5 * time.Second}
				x.run(t)
				if due := x.pacer.Due(x.length - 1); int64(len(x.exchanges)) != due || x.result.Offered != due {
					t.Errorf("%d received, %d offered, %d due", len(x.exchanges), x.result.Offered, due)
				}
				seen := map[int64]bool{}
				for _, e := range x.exchanges {
					n := number(t, e)
					if late := e.At.Sub(x.begin.Add(x.pacer.At(n))); late < 0 || late > 1100*time.Microsecond || seen[n] {
						t.Fatalf("arrival %d (seen %v) came %v late", n, seen[n], late)
					}
					seen[n] = true
				}
			})
		})
	}
}

// Each failure of a server is counted once, by its kind, and no request is silently repeated.
func TestBadServers(t *testing.T) {
	for _, c := range []struct {
		answer stubapi.Answer
		kind   string
	}{
		{stubapi.Answer{Status: 429, RetryAfter: time.Second}, "429"},
		{stubapi.Answer{Status: 500}, "500"},
		{stubapi.Answer{Status: 404}, "404"},
		{stubapi.Answer{Fault: stubapi.Reset}, "reset"},
		{stubapi.Answer{Fault: stubapi.GoAway}, "goaway"},
		{stubapi.Answer{Fault: stubapi.Hangup}, "reset"},
		{stubapi.Answer{Fault: stubapi.Silence}, "timeout"},
		{stubapi.Answer{Fault: stubapi.Truncated}, "truncated"},
		{stubapi.Answer{Fault: stubapi.Cut}, "reset"},
		{stubapi.Answer{Fault: stubapi.Garbled}, "malformed"},
		{stubapi.Answer{Fault: stubapi.EndlessHeaders}, "protocol"},
		{stubapi.Answer{Fault: stubapi.GiantHeader}, "protocol"},
		{stubapi.Answer{Fault: stubapi.BadFrame}, "protocol"},
		{stubapi.Answer{After: 5 * time.Second}, "timeout"},
	} {
		t.Run(fmt.Sprintf("%s fault %d", c.kind, c.answer.Fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// The arrivals are so far apart that a lost connection affects only one request.
				x := experiment{
					pipes: true, pacer: newPacer(t, "constant", 4, arrival.Shape{}), length: 25 * time.Second, timeout: 3 * time.Second,
					policy: func(time.Time) stubapi.Policy {
						return func(r stubapi.Request) stubapi.Answer {
							if n, _ := strconv.Atoi(strings.TrimPrefix(r.Query, "n=")); n%10 == 3 {
								return c.answer
							}
							return stubapi.Answer{}
						}
					},
				}
				x.run(t)
				want := map[string]int64{"200": 90, c.kind: 10}
				if fmt.Sprint(x.result.Outcomes) != fmt.Sprint(want) {
					t.Errorf("outcomes %v, want %v", x.result.Outcomes, want)
				}
				if int64(len(x.exchanges)) != x.result.Sent {
					t.Errorf("the server received %d of %d sent requests", len(x.exchanges), x.result.Sent)
				}
			})
		})
	}
}

// Over real sockets the machine adds delays, but no measured quantile is below the true one.
func TestNeverFasterThanTheTruth(t *testing.T) {
	x := experiment{
		pacer: newPacer(t, "poisson", 200, arrival.Shape{}), length: time.Second,
		policy: func(time.Time) stubapi.Policy {
			return stubapi.Bimodal(50*time.Millisecond, 200*time.Millisecond, 0.1, 3)
		},
	}
	x.run(t)
	if got := int64(len(x.exchanges)); got != x.result.Sent || x.result.Offered != x.result.Sent+x.result.Unsent {
		t.Fatalf("received %d; offered %d, sent %d, unsent %d", got, x.result.Offered, x.result.Sent, x.result.Unsent)
	}
	if x.result.Sent == 0 {
		t.Fatal("the load sent nothing within a second")
	}
	// The server received each request at or after its intended start, so the engine began at the latest at this time.
	// The latencies computed from it are therefore at most the true ones.
	x.begin = x.exchanges[0].At
	for _, e := range x.exchanges {
		if begin := e.At.Add(-x.pacer.At(number(t, e))); begin.Before(x.begin) {
			x.begin = begin
		}
	}
	truth := x.latencies(t)
	for _, q := range []struct{ q, got float64 }{{0.5, x.result.Latency.P50}, {0.9, x.result.Latency.P90}, {0.99, x.result.Latency.P99}} {
		// Round the rank down, because with few values the histogram's rank may be one lower.
		if want := truth[max(int(q.q*float64(len(truth))), 1)-1].Seconds(); q.got < 0.99*want {
			t.Errorf("quantile %v = %v s, want at least %v s", q.q, q.got, want)
		}
	}
}
