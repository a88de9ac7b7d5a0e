package traffic

import (
	"context"
	"io"
	"maps"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// server is an API server in the fake time of a synctest bubble: it answers
// 200 after as long as it says.
type server func(since time.Duration) time.Duration

func (s server) transport(seen func(*http.Request)) http.RoundTripper {
	start := time.Now()
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if seen != nil {
			seen(req)
		}
		if !pause(req.Context(), s(time.Since(start))) {
			return nil, req.Context().Err()
		}
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// offer runs a load of 100 gets per second against the server for 10 s of fake
// time: 1,000 arrivals.
func offer(t *testing.T, s server, change func(*scenario.Load)) result.Requests {
	t.Helper()
	return offerOperation(t, s, change, nil)["storm"]
}

func offerOperation(t *testing.T, s server, change func(*scenario.Load), wrap func(*Requests)) map[string]result.Requests {
	t.Helper()
	r, err := NewRequests(
		Target{Config: &rest.Config{Host: "https://stub", Transport: s.transport(nil)}, Namespace: "storm", Seed: 1},
		load("requests", func(l *scenario.Load) {
			l.Verb, l.Rate = "get", 100
			if change != nil {
				change(l)
			}
		}))
	must(t, err)
	if wrap != nil {
		wrap(r)
	}
	r.BeginPhase("storm", time.Now())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must(t, r.Run(ctx))
	return r.Results()
}

func near(got, want float64) bool { return math.Abs(got-want) <= want*0.01+1e-6 }

func TestAFixedLatencyIsWhatIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := offer(t, func(time.Duration) time.Duration { return 50 * time.Millisecond }, nil)
		for name, got := range map[string]float64{
			"p50": r.Latency.P50, "p99.9": r.Latency.P999, "max": r.Latency.Max, "mean": r.Latency.Mean, "service": r.Service.P99,
		} {
			if !near(got, 0.050) {
				t.Errorf("%s = %v s, want 0.050", name, got)
			}
		}
		if r.Offered != 1000 || r.Sent != 1000 || r.Unsent != 0 || r.Succeeded != 1000 || r.Outcomes["200"] != 1000 {
			t.Errorf("%+v, want 1000 offered, sent and answered", r)
		}
		if !near(r.OfferedRate, 100) || !near(r.AchievedRate, 100) || r.Lag.Max != 0 {
			t.Errorf("offered %v/s, achieved %v/s, lag up to %v s; want 100, 100, 0", r.OfferedRate, r.AchievedRate, r.Lag.Max)
		}
	})
}

func TestABimodalLatencyHasBothModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		r := offer(t, func(time.Duration) time.Duration {
			if n.Add(1)%20 == 0 { // 5%; the arrivals are 10 ms apart
				return 800 * time.Millisecond
			}
			return 5 * time.Millisecond
		}, nil)
		if !near(r.Latency.P50, 0.005) || !near(r.Latency.P90, 0.005) || !near(r.Latency.P99, 0.8) {
			t.Errorf("p50 %v, p90 %v, p99 %v s; want 0.005, 0.005, 0.8", r.Latency.P50, r.Latency.P90, r.Latency.P99)
		}
	})
}

// stall answers nothing from 5 s to 7 s.
func stall(since time.Duration) time.Duration {
	if since >= 5*time.Second && since < 7*time.Second {
		return 7*time.Second - since + time.Millisecond
	}
	return time.Millisecond
}

// A stall of 2 s in 10 s of arrivals hits one in five of them, for 1 s in the
// mean. A closed loop would report one slow request.
func TestAStallIsSeenByEveryArrivalDuringIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := offer(t, stall, nil)
		if !near(r.Latency.P99, 1.9) || !near(r.Latency.P90, 1.0) || !near(r.Latency.Max, 2.001) || !near(r.Latency.Mean, 0.202) {
			t.Errorf("p90 %v, p99 %v, max %v, mean %v s; want 1.0, 1.9, 2.0, 0.2", r.Latency.P90, r.Latency.P99, r.Latency.Max, r.Latency.Mean)
		}
		if r.Sent != 1000 {
			t.Errorf("%d sent, want all 1000", r.Sent)
		}
	})
}

// With a single slot the same stall leaves 199 arrivals unsent, and they are
// counted: the one slow request is not the whole story.
func TestAStallWithNoFreeSlotIsCountedAsUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := offer(t, stall, func(l *scenario.Load) { l.MaxInFlight = 1 })
		if r.Unsent != 200 || r.Sent != 800 || r.Offered != 1000 {
			t.Errorf("offered %d, sent %d, unsent %d; want 1000, 800, 200", r.Offered, r.Sent, r.Unsent)
		}
	})
}

// Our own dispatcher stalls for 2 s: latency from the intended start and lag
// show it, service time does not.
func TestOurOwnStallIsLatencyAndLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := offerOperation(t, func(time.Duration) time.Duration { return 50 * time.Millisecond }, nil, func(r *Requests) {
			r.engine.op = &stalling{r.op}
		})["storm"]
		if !near(r.Lag.Max, 2) || !near(r.Latency.Max, 2.05) || !near(r.Latency.P90, 1.05) {
			t.Errorf("lag up to %v s, latency p90 %v, max %v s; want 2, 1.05, 2.05", r.Lag.Max, r.Latency.P90, r.Latency.Max)
		}
		if !near(r.Service.Max, 0.05) {
			t.Errorf("service up to %v s, want 0.05", r.Service.Max)
		}
	})
}

type stalling struct{ operation }

func (s *stalling) reserve(n int64, intended time.Time) (int64, bool) {
	if n == 500 {
		pause(context.Background(), 2*time.Second)
	}
	return s.operation.reserve(n, intended)
}

// Ten slots and 995 ms of service let through ten requests each second.
func TestMaxInFlightIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := offer(t, func(time.Duration) time.Duration { return 995 * time.Millisecond }, func(l *scenario.Load) { l.MaxInFlight = 10 })
		if r.Offered != 1000 || r.Sent != 100 || r.Unsent != 900 {
			t.Errorf("offered %d, sent %d, unsent %d; want 1000, 100, 900", r.Offered, r.Sent, r.Unsent)
		}
	})
}

func TestRunEndsAfterTheLastRequestsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		r := offer(t, func(time.Duration) time.Duration { return time.Hour }, func(l *scenario.Load) {
			l.Timeout = scenario.Duration(3 * time.Second)
		})
		if took := time.Since(begun); took < 12*time.Second || took > 13*time.Second {
			t.Errorf("Run took %v, want 10 s and the rest of the timeout", took)
		}
		if r.Outcomes["timeout"] != 1000 || r.Succeeded != 0 || !near(r.Latency.P50, 3) {
			t.Errorf("outcomes %v, p50 %v s; want 1000 timeouts of 3 s", r.Outcomes, r.Latency.P50)
		}
	})
}

func TestARequestBelongsToThePhaseOfItsIntendedStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phases := offerOperation(t, func(time.Duration) time.Duration { return 2 * time.Second }, nil, func(r *Requests) {
			r.BeginPhase("before", time.Now().Add(-time.Second))
			time.AfterFunc(5*time.Second, func() { r.BeginPhase("after", time.Now()) })
		})
		if a, b := phases["storm"].Offered, phases["after"].Offered; a+b != 1000 || a < 499 || a > 501 {
			t.Errorf("%d and %d requests in the two phases, want 500 each", a, b)
		}
		if _, ok := phases["before"]; ok {
			t.Error("a phase that was over before the start has results")
		}
		if r := phases["after"]; !near(r.OfferedRate, 100) {
			t.Errorf("%v/s offered in the second phase, want 100", r.OfferedRate)
		}
	})
}

func TestPoissonArrivalsAreOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := offer(t, func(time.Duration) time.Duration { return time.Millisecond }, func(l *scenario.Load) { l.Arrival = "poisson" })
		if r.Offered < 850 || r.Offered > 1150 || r.Sent != r.Offered {
			t.Errorf("%d offered, %d sent; want about 1000", r.Offered, r.Sent)
		}
	})
}

// A seed fixes which object each arrival works on, also when some before it
// could not be sent.
func TestSameSeedSameRequests(t *testing.T) {
	sequence := func(t *testing.T, seed int64, change func(*scenario.Load)) map[time.Duration]string {
		seen := map[time.Duration]string{} // by time of arrival
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			var mu sync.Mutex
			transport := server(stall).transport(func(req *http.Request) {
				mu.Lock()
				seen[time.Since(begun)] = req.Method + " " + req.URL.Path
				mu.Unlock()
			})
			r, err := NewRequests(
				Target{Config: &rest.Config{Host: "https://stub", Transport: transport}, Namespace: "storm", Seed: seed},
				load("requests", func(l *scenario.Load) { l.Verb, l.Rate, l.Objects = "get", 100, 50; change(l) }))
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			must(t, r.Run(ctx))
		})
		return seen
	}
	whole := sequence(t, 7, func(*scenario.Load) {})
	holed := sequence(t, 7, func(l *scenario.Load) { l.MaxInFlight = 1 })
	if len(whole) != 1000 || len(holed) != 800 {
		t.Fatalf("%d and %d requests, want 1000 and 800", len(whole), len(holed))
	}
	for at, r := range holed {
		if whole[at] != r {
			t.Fatalf("at %v: %s and %s with the same seed", at, whole[at], r)
		}
	}
	if maps.Equal(whole, sequence(t, 8, func(*scenario.Load) {})) {
		t.Error("another seed makes the same sequence")
	}
}
