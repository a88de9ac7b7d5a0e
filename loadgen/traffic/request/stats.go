package request

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stormglass/stormglass/loadgen/latency"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/traffic"
)

// stats is what the requests of one kind did in one phase.
type stats struct {
	latency, service, lag, connect *latency.Histogram
	offered, unsent                atomic.Int64

	mu        sync.Mutex
	succeeded int64
	bytes     int64
	pages     int64
	outcomes  map[traffic.Outcome]int64
}

// newStats measures up to twice the timeout: a request that times out takes
// its whole timeout, after whatever lag it was sent with.
func newStats(timeout time.Duration) *stats {
	h := func() *latency.Histogram { return latency.New(2 * timeout) }
	return &stats{latency: h(), service: h(), lag: h(), connect: h(), outcomes: map[traffic.Outcome]int64{}}
}

// record takes in a request that has ended.
func (s *stats) record(f *flight, o traffic.Outcome, end time.Duration) {
	s.latency.Record(end - f.intended)
	s.lag.Record(f.taken - f.intended)
	s.connect.Record(f.sent - f.taken)
	s.service.Record(end - f.sent)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[o]++
	s.bytes += f.bytes
	if f.again > 0 {
		s.pages += f.again + 1
	}
	if o.Success() {
		s.succeeded++
	}
}

// result is of a phase in which the load ran for so long.
func (s *stats) result(length time.Duration) result.Requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := result.Requests{
		Offered: s.offered.Load(), Unsent: s.unsent.Load(), Succeeded: s.succeeded, Outcomes: map[string]int64{},
		Latency: s.latency.Latency(), Service: s.service.Latency(), Lag: s.lag.Latency(), Connect: s.connect.Latency(),
		Bytes: s.bytes, Pages: s.pages,
	}
	r.Sent = r.Offered - r.Unsent
	for o, n := range s.outcomes {
		r.Outcomes[o.String()] = n
	}
	if sec := length.Seconds(); sec > 0 {
		r.OfferedRate, r.AchievedRate = float64(r.Offered)/sec, float64(r.Succeeded)/sec
	}
	return r
}

// window is what a live display shows.
type window struct {
	offered, achieved atomic.Int64
	latency           *latency.Histogram

	mu                       sync.Mutex
	offeredRate, achieveRate traffic.Rate
}

func (w *window) live(now time.Time) traffic.Live {
	w.mu.Lock()
	defer w.mu.Unlock()
	return traffic.Live{
		Offered:  w.offeredRate.Since(now, w.offered.Load()),
		Achieved: w.achieveRate.Since(now, w.achieved.Load()),
		P99:      time.Duration(w.latency.Take().P99 * float64(time.Second)),
	}
}
