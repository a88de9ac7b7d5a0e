package record

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"runtime/metrics"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/stormglass/stormglass/loadgen/latency"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The bounds past which the generator is saturated, and what it measured says
// as much about itself as about the cluster.
const (
	// MaxSchedulingLag bounds the p99 of how late a timer of ours fires: a
	// tenth of the 1 s objective that latencies from the intended start are
	// most often held against. Up to there, our own delay moves no verdict
	// that was not on edge.
	MaxSchedulingLag = 100 * time.Millisecond
	// MaxMemoryShare of the memory we may use. Past it the kernel reclaims
	// pages that are in use, or kills.
	MaxMemoryShare = 0.8
	// MaxDescriptorShare of our own descriptor limit. Past it a burst of
	// connections fails here and looks like a fault of the cluster.
	MaxDescriptorShare = 0.9
)

// Limits are what the generator may use. Zero means unknown: not judged.
type Limits struct {
	MemoryBytes int64
	Descriptors uint64
}

// Saturation says in a line each which bound the generator passed.
func Saturation(g result.Generator, l Limits) []string {
	var passed []string
	add := func(format string, args ...any) { passed = append(passed, fmt.Sprintf(format, args...)) }
	if lag := g.SchedulingLag; lag.Count > 0 && lag.P99 > MaxSchedulingLag.Seconds() {
		add("generator saturated: its timers fired %.0f ms late (p99), the bound is %d ms: the machine has too little CPU for it",
			lag.P99*1000, MaxSchedulingLag.Milliseconds())
	}
	if limit := MaxMemoryShare * float64(l.MemoryBytes); limit > 0 && float64(g.MaxRSSBytes) > limit {
		add("generator saturated: it used %d MB of memory, the bound is %.0f MB (%.0f%% of what there is)",
			g.MaxRSSBytes/1e6, limit/1e6, MaxMemoryShare*100)
	}
	if limit := MaxDescriptorShare * float64(l.Descriptors); limit > 0 && float64(g.MaxDescriptors) > limit {
		add("generator saturated: it had %d descriptors open, the bound is %.0f (%.0f%% of its limit)",
			g.MaxDescriptors, limit, MaxDescriptorShare*100)
	}
	return passed
}

const (
	lagTick    = 10 * time.Millisecond
	sampleTick = time.Second
)

// SelfMeter measures what the generator costs and how fit it is.
type SelfMeter struct {
	limits  Limits
	cpu     float64 // seconds used before New
	lag     *latency.Histogram
	lagSeen prometheus.Histogram

	mu  sync.Mutex
	max result.Generator // maxima so far
}

// NewSelfMeter makes a meter and registers the standard process and Go
// collectors, so that job "loadgen" exports process_* as all others do, and
// stormglass_scheduling_lag_seconds. It measures from now on.
func NewSelfMeter(registry prometheus.Registerer) (*SelfMeter, error) {
	m := &SelfMeter{
		limits: ownLimits(), cpu: cpuSeconds(), lag: latency.New(time.Minute),
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

// Results is the cost and the fitness so far.
func (m *SelfMeter) Results() result.Generator {
	m.sample()
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.max
	g.CPUSeconds = cpuSeconds() - m.cpu
	g.GCPauseP99 = gcPauseP99()
	g.SchedulingLag = m.lag.Latency()
	g.Saturated = Saturation(g, m.limits)
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

// gcPauseP99 is the upper edge of the bucket that holds the p99 of the
// stop-the-world pauses of the garbage collector, since the process began.
func gcPauseP99() float64 {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	h := s[0].Value.Float64Histogram()
	var total, below uint64
	for _, n := range h.Counts {
		total += n
	}
	for i, n := range h.Counts {
		if below += n; total > 0 && float64(below) >= 0.99*float64(total) {
			return h.Buckets[min(i+1, len(h.Buckets)-2)] // the last edge is infinite
		}
	}
	return 0
}

// ownLimits reads the memory and the descriptors this process may use.
func ownLimits() Limits {
	l := Limits{MemoryBytes: memoryLimit()}
	var rl syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &rl) == nil {
		l.Descriptors = uint64(rl.Cur)
	}
	return l
}
