package record

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/stormglass/stormglass/loadgen/latency"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	lagTick    = 10 * time.Millisecond
	sampleTick = time.Second
)

// SelfMeter measures what the generator costs and how fit it is.
type SelfMeter struct {
	limits  Limits
	cpu     float64      // seconds used before New
	gc      float64      // of them for garbage collection
	pauses  pauses       // before New
	backlog func() int64 // nil: not looked at
	lag     *latency.Histogram
	lagSeen prometheus.Histogram

	mu       sync.Mutex
	max      result.Generator // maxima so far
	standing standing
}

// NewSelfMeter makes a meter and registers the standard process and Go
// collectors, so that job "loadgen" exports process_* as all others do, and
// stormglass_scheduling_lag_seconds. It measures from now on.
func NewSelfMeter(registry prometheus.Registerer) (*SelfMeter, error) {
	m := &SelfMeter{
		limits: ownLimits(), cpu: cpuSeconds(), gc: gcSeconds(), pauses: gcPauses(), lag: latency.New(time.Minute),
		lagSeen: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "stormglass_scheduling_lag_seconds",
			Help:    "How late a 10 ms ticker of the load generator fires.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}),
	}
	for _, c := range []prometheus.Collector{
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(
			collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/sched/latencies:seconds$`)})),
		m.lagSeen,
	} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register the generator's own metrics: %w", err)
		}
	}
	return m, nil
}

// Backlog says how to learn how many bytes the API servers have sent that were
// not read yet, over all connections. Call it before Run.
func (m *SelfMeter) Backlog(unread func() int64) { m.backlog = unread }

// Run measures until ctx ends, which is no error.
func (m *SelfMeter) Run(ctx context.Context) error {
	tick := time.NewTicker(lagTick)
	defer tick.Stop()
	next := time.Now().Add(lagTick)
	var sampled time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := time.Now()
		next = m.ticked(next, now)
		if now.Sub(sampled) >= sampleTick {
			sampled = now
			m.sample()
			m.look()
		}
	}
}

// ticked notes a tick at now that was due at next, and those after it that it
// swallowed, each late from its own due time, and returns when the coming one
// is due. Counting the late tick alone would be coordinated omission.
func (m *SelfMeter) ticked(next, now time.Time) time.Time {
	m.observe(now.Sub(next))
	for next = next.Add(lagTick); next.Before(now); next = next.Add(lagTick) {
		m.observe(now.Sub(next))
	}
	return next
}

func (m *SelfMeter) observe(late time.Duration) {
	late = max(late, 0)
	m.lag.Record(late)
	m.lagSeen.Observe(late.Seconds())
}

func (m *SelfMeter) sample() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.max.MaxGoroutines = max(m.max.MaxGoroutines, runtime.NumGoroutine())
	m.max.MaxDescriptors = max(m.max.MaxDescriptors, openDescriptors())
	m.max.MaxRSSBytes = max(m.max.MaxRSSBytes, peakRSS())
}

// look looks at what has come and is not read yet.
func (m *SelfMeter) look() {
	if m.backlog == nil {
		return
	}
	n := m.backlog()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.max.BacklogMax = max(m.max.BacklogMax, n)
	m.standing.look(n)
}

// Results is the cost and the fitness so far.
func (m *SelfMeter) Results() result.Generator {
	m.sample()
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.max
	g.CPUSeconds = cpuSeconds() - m.cpu
	g.GCCPU = gcSeconds() - m.gc
	paused := gcPauses().since(m.pauses)
	g.GCPauseP99, g.GCPauseMax = paused.quantile(0.99), paused.quantile(1)
	g.SchedulingLag = m.lag.Latency()
	g.Saturated = append(Saturation(g, m.limits), m.standing.saturation()...)
	return g
}

// cpuSeconds is the user and system time of this process.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
