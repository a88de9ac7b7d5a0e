package objects

import (
	"context"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/result"
)

// longestRequest is the longest latency that a Meter records. It includes retries while the control plane is unavailable.
const longestRequest = 10 * time.Minute

// Meter measures the requests of one action in one phase, including all repetitions of the action. A nil Meter measures
// nothing. It is safe for concurrent use.
type Meter struct {
	mu        sync.Mutex
	requests  int64 // number of requests that were due
	done      int64
	refused   int64 // evictions that a PodDisruptionBudget refused; done includes them
	due, took time.Duration
	service   *latency.Histogram
}

// NewMeter returns an empty Meter.
func NewMeter() *Meter { return &Meter{service: latency.New(longestRequest)} }

type meterKey struct{}

// WithMeter returns a context in which Act and Make measure their requests. A nil Meter measures nothing.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

func meterOf(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}

func (m *Meter) timed(f func() error) error {
	if m == nil {
		return f()
	}
	began := time.Now()
	err := f()
	m.service.Record(time.Since(began))
	return err
}

// request calls f, which sends one request. It records how long f took and whether f succeeded.
func (m *Meter) request(f func() error) error {
	err := m.timed(f)
	if m != nil && err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.done++
	}
	return err
}

// refuse records that a PodDisruptionBudget refused the last request. The method request has already counted that request
// as done.
func (m *Meter) refuse() {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.refused++
	}
}

// round adds one round of the action: n requests at the rate perSecond, which together took the duration `took`. If ctx
// has ended, it counts only the requests that were due before that.
func (m *Meter) round(ctx context.Context, n int, perSecond float64, took time.Duration) {
	if m == nil || perSecond <= 0 {
		return
	}
	if ctx.Err() != nil {
		n = min(n, int(took.Seconds()*perSecond))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests += int64(n)
	m.due += time.Duration(float64(n) / perSecond * float64(time.Second))
	m.took += took
}

// AddTo adds the measurements to an action's results.
func (m *Meter) AddTo(a *result.Action) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.Requests, a.Done, a.Refused, a.DueSeconds, a.Seconds = m.requests, m.done-m.refused, m.refused, m.due.Seconds(), m.took.Seconds()
	a.Service = m.service.Latency()
}
