package traffic

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/latency"
	"github.com/stormglass/stormglass/loadgen/result"
)

// requestStats is what the requests of one phase did.
type requestStats struct {
	latency, service, lag *latency.Histogram

	mu       sync.Mutex
	offered  int64
	unsent   int64
	ok       int64
	outcomes map[Outcome]int64
}

// newRequestStats measures up to twice the timeout: a request that times out
// takes its whole timeout, after whatever lag it was sent with.
func newRequestStats(timeout time.Duration) *requestStats {
	return &requestStats{
		latency: latency.New(2 * timeout), service: latency.New(2 * timeout), lag: latency.New(2 * timeout),
		outcomes: map[Outcome]int64{},
	}
}

func (s *requestStats) offer(n, unsent int64) {
	s.mu.Lock()
	s.offered += n
	s.unsent += unsent
	s.mu.Unlock()
}

func (s *requestStats) record(o Outcome, intended, sent, end time.Time) {
	s.latency.Record(end.Sub(intended))
	s.service.Record(end.Sub(sent))
	s.lag.Record(sent.Sub(intended))
	s.mu.Lock()
	s.outcomes[o]++
	if o.Success() {
		s.ok++
	}
	s.mu.Unlock()
}

func (s *requestStats) result(length time.Duration) result.Requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := result.Requests{
		Offered: s.offered, Unsent: s.unsent, Sent: s.offered - s.unsent,
		Succeeded: s.ok, Outcomes: map[string]int64{},
		Latency: s.latency.Latency(), Service: s.service.Latency(), Lag: s.lag.Latency(),
	}
	for o, n := range s.outcomes {
		r.Outcomes[o.String()] = n
	}
	if sec := length.Seconds(); sec > 0 {
		r.OfferedRate, r.AchievedRate = float64(s.offered)/sec, float64(s.ok)/sec
	}
	return r
}

// window is what a live display shows of requests.
type window struct {
	offered, achieved atomic.Int64
	latency           *latency.Histogram

	mu                       sync.Mutex
	offeredRate, achieveRate Rate
}

func (w *window) live(now time.Time) Live {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Live{
		Offered:  w.offeredRate.Since(now, w.offered.Load()),
		Achieved: w.achieveRate.Since(now, w.achieved.Load()),
		P99:      time.Duration(w.latency.Take().P99 * float64(time.Second)),
	}
}
