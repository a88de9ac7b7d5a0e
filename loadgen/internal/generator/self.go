// Package generator measures the cost and the delays of the load generator itself. It defines the limits above which
// the generator counts as saturated: its measurements then cannot be judged.
package generator

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

	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/stall"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	lagTick    = 10 * time.Millisecond
	sampleTick = time.Second
)

// SelfMeter measures the resource use of the generator and whether it is saturated.
type SelfMeter struct {
	limits  Limits
	cpu     float64      // CPU seconds used before NewSelfMeter
	gc      float64      // CPU seconds used for garbage collection before NewSelfMeter
	pauses  pauses       // GC pauses before NewSelfMeter
	backlog func() int64 // number of received and unread bytes; nil if it is not measured
	lag     *latency.Histogram
	lagSeen prometheus.Histogram
	stalls  stall.Meter

	mu     sync.Mutex
	phases []*phaseFitness // the time before the first phase (without a name), then each phase
}

// NewSelfMeter starts a meter and returns it. It registers the standard process and Go collectors, so that the job
// "loadgen" exports process_* metrics like all other jobs. It also registers metrics of the timer's lag and of the
// machine's CPU use.
func NewSelfMeter(registry prometheus.Registerer) (*SelfMeter, error) {
	m := &SelfMeter{
		limits: ownLimits(), cpu: cpuSeconds(), gc: gcSeconds(), pauses: gcPauses(), lag: latency.New(longestLag),
		phases: []*phaseFitness{newPhaseFitness("")},
		lagSeen: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "stormglass_scheduling_lag_seconds",
			Help:    "By how much a 10 ms ticker of the load generator fires late.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}),
	}
	for _, c := range []prometheus.Collector{
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(
			collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/sched/(latencies:seconds|gomaxprocs:threads)$`)})),
		m.lagSeen,
		newMachineCollector(),
	} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register the generator's own metrics: %w", err)
		}
	}
	return m, nil
}

// Backlog sets the function that returns the number of received and unread bytes on all connections to the API
// servers. Call Backlog before Run.
func (m *SelfMeter) Backlog(unread func() int64) { m.backlog = unread }

// Stalls returns the meter of the times in which this process did not run. Run updates that meter.
func (m *SelfMeter) Stalls() *stall.Meter { return &m.stalls }

// BeginPhase begins a phase. Measurements belong to it until the next call.
func (m *SelfMeter) BeginPhase(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.phases = append(m.phases, newPhaseFitness(name))
}

// Run measures until ctx ends, and then returns nil.
func (m *SelfMeter) Run(ctx context.Context) error {
	sleep := newSleep(ctx)
	defer sleep.end()
	defer m.stalls.Stop()
	queue := newRunQueue()
	next := time.Now().Add(lagTick)
	var sampled time.Time
	for sleep.until(next) {
		now := time.Now()
		next = m.ticked(next, now)
		m.stalls.Queued(queue.longest(), now)
		if now.Sub(sampled) >= sampleTick {
			sampled = now
			m.sample()
			m.look()
		}
	}
	return nil
}

// ticked records the lag of a tick of the timer that was due at the time next and came at the time `now`. It also
// records the ticks that were missed in between, each with the lag from its own due time: to count only the late tick
// would be coordinated omission. ticked returns the due time of the next tick.
func (m *SelfMeter) ticked(next, now time.Time) time.Time {
	due, phase := next, m.phase()
	m.observe(phase, now.Sub(next))
	for next = next.Add(lagTick); !next.After(now); next = next.Add(lagTick) {
		m.observe(phase, now.Sub(next))
	}
	m.stalls.Ticked(due, now, next)
	return next
}

func (m *SelfMeter) observe(phase *phaseFitness, late time.Duration) {
	late = max(late, 0)
	m.lag.Record(late)
	phase.lag.Record(late)
	m.lagSeen.Observe(late.Seconds())
}

// phase returns the phase that began last.
func (m *SelfMeter) phase() *phaseFitness {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.phases[len(m.phases)-1]
}

func (m *SelfMeter) sample() {
	p := m.phase()
	m.mu.Lock()
	defer m.mu.Unlock()
	p.max.MaxGoroutines = max(p.max.MaxGoroutines, runtime.NumGoroutine())
	p.max.MaxDescriptors = max(p.max.MaxDescriptors, openDescriptors())
	p.max.MaxRSSBytes = max(p.max.MaxRSSBytes, peakRSS())
}

// look samples the backlog: the number of received bytes that the generator has not read yet.
func (m *SelfMeter) look() {
	if m.backlog == nil {
		return
	}
	n, p := m.backlog(), m.phase()
	m.mu.Lock()
	defer m.mu.Unlock()
	p.max.BacklogMax = max(p.max.BacklogMax, n)
	p.standing.look(n)
}

// Results returns the resource use and the saturation of the generator so far. The field Saturated lists the limits
// that the generator exceeded before the first phase. If it exceeded no limit before the first phase or in any phase,
// Saturated lists the limits that it exceeded over the whole run. PhaseSaturation lists the limits that it exceeded in
// a phase.
func (m *SelfMeter) Results() result.Generator {
	m.sample()
	m.mu.Lock()
	defer m.mu.Unlock()
	var g result.Generator
	for _, p := range m.phases {
		g.MaxGoroutines = max(g.MaxGoroutines, p.max.MaxGoroutines)
		g.MaxDescriptors = max(g.MaxDescriptors, p.max.MaxDescriptors)
		g.MaxRSSBytes = max(g.MaxRSSBytes, p.max.MaxRSSBytes)
		g.BacklogMax = max(g.BacklogMax, p.max.BacklogMax)
	}
	g.CPUSeconds = cpuSeconds() - m.cpu
	g.GCCPU = gcSeconds() - m.gc
	paused := gcPauses().since(m.pauses)
	g.GCPauseP99, g.GCPauseMax = paused.quantile(0.99), paused.quantile(1)
	g.SchedulingLag = m.lag.Latency()
	saturated := false
	for _, p := range m.phases[1:] {
		saturated = saturated || len(p.saturation(m.limits)) > 0
	}
	if g.Saturated = m.phases[0].saturation(m.limits); len(g.Saturated) == 0 && !saturated {
		g.Saturated = Saturation(g, m.limits)
	}
	return g
}

// PhaseSaturation returns one line for each limit that the generator exceeded in a phase.
func (m *SelfMeter) PhaseSaturation(name string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.phases[1:] {
		if p.name == name {
			return p.saturation(m.limits)
		}
	}
	return nil
}

// cpuSeconds returns the user and system CPU time of this process, in seconds.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
