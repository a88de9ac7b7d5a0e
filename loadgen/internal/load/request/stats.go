package request

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/metricopts"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/result"
)

// stats contains the results of one kind of request in one phase.
type stats struct {
	latency, external           *latency.Histogram
	service, lag, connect       *latency.Histogram
	offered, unsent, unsentLate atomic.Int64

	mu         sync.Mutex
	succeeded  int64
	failedLate int64
	bytes      int64
	pages      int64
	outcomes   []outcomeCount
	// ended counts the requests that ended in the phase, even if they were sent in an earlier phase. answered counts
	// the ended requests with a 2xx response.
	ended, answered int64
	// overdue counts the requests in `answered` whose response arrived after the end of the schedule.
	overdue int64
}

// outcomeCount is the number of requests with one outcome. stats has a list of them, which is cheaper than a map
// because few outcomes occur.
type outcomeCount struct {
	outcome load.Outcome
	count   int64
}

// newStats returns empty stats. The histograms' maximum is twice the timeout, because a latency may include a lag
// before the timeout starts.
func newStats(timeout time.Duration) *stats {
	h := func() *latency.Histogram { return latency.New(2 * timeout) }
	return &stats{latency: h(), external: h(), service: h(), lag: h(), connect: h()}
}

func (s *stats) record(f *flight, o load.Outcome, end time.Duration, own ownDelay) {
	s.latency.Record(end - f.intended)
	s.external.Record(end - f.intended - own.all())
	s.lag.Record(f.taken - f.intended)
	s.connect.Record(f.sent - f.taken)
	s.service.Record(end - f.sent)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(o)
	s.bytes += f.bytes
	if f.again > 0 {
		s.pages += f.again + 1
	}
	switch {
	case o.Success():
		s.succeeded++
	case own.failed(o, end-f.intended):
		s.failedLate++
	}
}

// came counts a request whose response arrived in the phase. overdue means that it arrived after the end of the
// schedule; only successful requests count as overdue.
func (s *stats) came(o load.Outcome, overdue bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
	if !o.Success() {
		return
	}
	s.answered++
	if overdue {
		s.overdue++
	}
}

// count counts one request with the given outcome. The caller holds mu.
func (s *stats) count(o load.Outcome) {
	for i := range s.outcomes {
		if s.outcomes[i].outcome == o {
			s.outcomes[i].count++
			return
		}
	}
	s.outcomes = append(s.outcomes, outcomeCount{o, 1})
}

// sums returns the counts of the phase. The rates are over `length`, the time in which arrivals were due in the phase.
// `before` is the number of requests that were open when the phase began.
func (s *stats) sums(length time.Duration, before int64) result.Requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := result.Requests{
		Offered: s.offered.Load(), Unsent: s.unsent.Load(), Succeeded: s.succeeded, Outcomes: map[string]int64{},
		UnsentLate: s.unsentLate.Load(), FailedLate: s.failedLate, Bytes: s.bytes, Pages: s.pages, Answered: new(s.answered), Overdue: s.overdue,
	}
	r.Sent = r.Offered - r.Unsent
	r.Backlog = max(before+r.Sent-s.ended, 0)
	for _, o := range s.outcomes {
		r.Outcomes[o.outcome.String()] = o.count
	}
	if sec := length.Seconds(); sec > 0 {
		r.DueSeconds, r.OfferedRate, r.AchievedRate = sec, float64(r.Offered)/sec, float64(s.answered-s.overdue)/sec
	}
	return r
}

func (s *stats) addLatencies(r *result.Requests) {
	r.Latency, r.External, r.Service = s.latency.Latency(), s.external.Latency(), s.service.Latency()
	r.Lag, r.Connect = s.lag.Latency(), s.connect.Latency()
}

func (s *stats) part(sums result.Requests) load.RequestsPart {
	return load.RequestsPart{
		Sums: sums, Latency: s.latency.Counts(), External: s.external.Counts(),
		Lag: s.lag.Counts(), Connect: s.connect.Counts(), Service: s.service.Counts(),
	}
}

// window collects the values for the live display. They cover the time since the previous call of live.
type window struct {
	offered, achieved atomic.Int64
	latency           *latency.Histogram

	mu                       sync.Mutex
	offeredRate, achieveRate load.Rate
}

func (w *window) live(now time.Time) load.Live {
	w.mu.Lock()
	defer w.mu.Unlock()
	return load.Live{
		Offered:  w.offeredRate.Since(now, w.offered.Load()),
		Achieved: w.achieveRate.Since(now, w.achieved.Load()),
		P99:      time.Duration(w.latency.Take().P99 * float64(time.Second)),
	}
}

// metrics contains the Prometheus metrics of one verb and resource. Variants and tenants share them, because each set
// of labels would add a histogram.
type metrics struct {
	total   *prometheus.CounterVec           // counts requests, by label code
	byCode  atomic.Pointer[[]outcomeCounter] // cached counters of total; nil before the first outcome
	unsent  prometheus.Counter
	flying  prometheus.Gauge
	bytes   prometheus.Counter
	seconds prometheus.Observer
	lag     prometheus.Observer
}

type outcomeCounter struct {
	outcome load.Outcome
	counter prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, loadName string, kinds []Kind) ([]*metrics, error) {
	labels := []string{"load", "verb", "resource"}
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stormglass_requests_total",
		Help: "Requests sent, by HTTP status or kind of failure.",
	}, append([]string{"code"}, labels...))
	unsent := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stormglass_requests_unsent_total",
		Help: "Requests that were due and not sent, because maxInFlight requests were in flight or no object was free.",
	}, labels)
	flying := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stormglass_requests_in_flight",
		Help: "Requests that are due and have no response yet.",
	}, labels)
	bytes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stormglass_request_answer_bytes_total",
		Help: "Bytes of response bodies, as transferred.",
	}, labels)
	seconds := prometheus.NewHistogramVec(metricopts.Latency("stormglass_request_seconds",
		"Latency of requests from their intended start to the last byte of the response."), labels)
	lag := prometheus.NewHistogramVec(metricopts.Latency("stormglass_request_lag_seconds",
		"Time from the intended start of a request until the generator began to process it: the generator's own delay."), []string{"load"})
	err := errors.Join(load.Register(reg, &total), load.Register(reg, &unsent), load.Register(reg, &flying), load.Register(reg, &bytes), load.Register(reg, &seconds), load.Register(reg, &lag))
	all := make([]*metrics, len(kinds))
	for i, k := range kinds {
		all[i] = &metrics{
			total:  total.MustCurryWith(prometheus.Labels{"load": loadName, "verb": k.Verb, "resource": k.Resource}),
			unsent: unsent.WithLabelValues(loadName, k.Verb, k.Resource), flying: flying.WithLabelValues(loadName, k.Verb, k.Resource), bytes: bytes.WithLabelValues(loadName, k.Verb, k.Resource),
			seconds: seconds.WithLabelValues(loadName, k.Verb, k.Resource), lag: lag.WithLabelValues(loadName),
		}
	}
	return all, err
}

// counter returns the counter of an outcome, from a cache if possible.
func (m *metrics) counter(o load.Outcome) prometheus.Counter {
	last := m.byCode.Load()
	var known []outcomeCounter
	if last != nil {
		known = *last
	}
	for _, c := range known {
		if c.outcome == o {
			return c.counter
		}
	}
	counter := m.total.WithLabelValues(o.String())
	more := append(slices.Clone(known), outcomeCounter{o, counter})
	m.byCode.CompareAndSwap(last, &more) // if another goroutine stores first, the next call caches this counter
	return counter
}

func (m *metrics) record(f *flight, o load.Outcome, end time.Duration) {
	m.counter(o).Inc()
	m.flying.Dec()
	m.bytes.Add(float64(f.bytes))
	m.seconds.Observe((end - f.intended).Seconds())
	m.lag.Observe((f.taken - f.intended).Seconds())
}
