package generator

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/machine"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Above these limits, the generator counts as saturated: its measurements may then show delays of the generator instead
// of the cluster. Garbage collection needs no limit: too much of it makes timers and read loops late, and other limits
// detect that.
const (
	// MaxSchedulingLag is the limit for the p99 of the lateness of the generator's timer. It is a tenth of 1 s, the
	// most common threshold for latencies. Below the limit, the generator's own delay changes a verdict only if the
	// latency is close to its threshold.
	MaxSchedulingLag = 100 * time.Millisecond
	// MaxRequestLag is the limit for the p99 of a load's own lag: the time from the intended start of a request until
	// the generator starts to process it. Lag is part of the judged latency, so the limit is the same as
	// MaxSchedulingLag.
	MaxRequestLag = MaxSchedulingLag
	// minRequests is the minimum number of requests at which a load's lag is judged. With fewer, a single request would
	// determine the p99.
	minRequests = 100
	// minLate is the minimum number of ticks later than MaxSchedulingLag at which the lag of a phase is judged. That
	// many ticks cover half a second. Shorter stalls do not count as saturation, because the external latency of each
	// request excludes them (package stall).
	minLate = 50
	// MaxMemoryShare is the limit for the generator's memory use, as a fraction of the available memory. Above it,
	// the kernel reclaims pages that are in use, or kills processes.
	MaxMemoryShare = 0.8
	// MaxDescriptorShare is the limit for the generator's open file descriptors, as a fraction of its descriptor
	// limit. Above it, a burst of connections may fail in the generator and look like a fault of the cluster.
	MaxDescriptorShare = 0.9
	// MaxStandingBacklog is the limit for the standing backlog: the number of received bytes that were unread in each
	// of standingLooks consecutive samples, one second apart. The limit is the data that a fast stream (100 MB/s) sends
	// in 10 ms. It cannot be much higher, because the kernel buffers only about 64 KB of unread data per connection.
	//
	// A burst is not a problem: with 20,000 watches of one object, a write causes 30 MB of events, which the generator
	// reads before the next sample or the one after. A generator that is fast enough has almost no backlog in some of
	// the samples. A generator with a backlog in all samples reads all events late.
	MaxStandingBacklog = 1 << 20
	standingLooks      = 10
)

// Limits holds how much of each resource the generator may use. Zero means unknown; Saturation then ignores that
// resource.
type Limits struct {
	MemoryBytes int64
	Descriptors uint64
}

// longestLag is the maximum value of the histogram of the timer's lag.
const longestLag = time.Minute

// phaseFitness contains the measurements of the generator in one phase.
type phaseFitness struct {
	name     string // empty before the first phase
	lag      *latency.Histogram
	max      result.Generator // maximum of each measurement in the phase
	standing standing
}

func newPhaseFitness(name string) *phaseFitness {
	return &phaseFitness{name: name, lag: latency.New(longestLag)}
}

// saturation returns one line for each limit that the generator exceeded in the phase.
func (p *phaseFitness) saturation(l Limits) []string {
	g := p.max
	if g.SchedulingLag = p.lag.Latency(); p.lag.CountOver(MaxSchedulingLag) < minLate {
		g.SchedulingLag = result.Latency{}
	}
	where := "generator saturated"
	if p.name != "" {
		where += " in " + p.name
	}
	return prefixed(where+": ", append(passedBounds(g, l), p.standing.passedBound()...))
}

func prefixed(prefix string, all []string) []string {
	for i := range all {
		all[i] = prefix + all[i]
	}
	return all
}

// Saturation returns one line for each limit that the generator exceeded.
func Saturation(g result.Generator, l Limits) []string {
	return prefixed("generator saturated: ", passedBounds(g, l))
}

func passedBounds(g result.Generator, l Limits) []string {
	var passed []string
	add := func(format string, args ...any) { passed = append(passed, fmt.Sprintf(format, args...)) }
	if lag := g.SchedulingLag; lag.Count > 0 && lag.P99 > MaxSchedulingLag.Seconds() {
		add("loadgen's timers fired %.0f ms late (p99; limit %d ms), so loadgen was suspended or had too little CPU",
			lag.P99*1000, MaxSchedulingLag.Milliseconds())
	}
	if limit := MaxMemoryShare * float64(l.MemoryBytes); limit > 0 && float64(g.MaxRSSBytes) > limit {
		add("loadgen used %d MB of memory (limit %.0f MB, which is %.0f%% of the available memory)",
			g.MaxRSSBytes/1e6, limit/1e6, MaxMemoryShare*100)
	}
	if limit := MaxDescriptorShare * float64(l.Descriptors); limit > 0 && float64(g.MaxDescriptors) > limit {
		add("loadgen had %d open file descriptors (bound %.0f, which is %.0f%% of the limit of the process)",
			g.MaxDescriptors, limit, MaxDescriptorShare*100)
	}
	return passed
}

// standing computes the standing backlog: the largest minimum of standingLooks consecutive samples. The zero value is
// ready to use.
type standing struct {
	recent [standingLooks]int64
	looks  int
	most   int64
}

func (s *standing) look(backlog int64) {
	s.recent[s.looks%standingLooks] = backlog
	if s.looks++; s.looks >= standingLooks {
		s.most = max(s.most, slices.Min(s.recent[:]))
	}
}

// passedBound returns one line if the backlog exceeded its limit.
func (s *standing) passedBound() []string {
	if s.most <= MaxStandingBacklog {
		return nil
	}
	return []string{fmt.Sprintf(
		"for %d s, at least %.1f MB of received responses and events were unread (limit %.1f MB), so loadgen had too little CPU",
		standingLooks, float64(s.most)/1e6, MaxStandingBacklog/1e6)}
}

// LoadSaturation returns one line for each load, verb and tenant of a phase that sent requests so late that the
// latencies cannot be judged.
func LoadSaturation(p result.Phase) []string {
	var passed []string
	judge := func(r result.Requests) {
		if r.Lag.Count >= minRequests && r.Lag.P99 > MaxRequestLag.Seconds() {
			of := ""
			if r.Tenant != "" {
				of = " as " + r.Tenant
			}
			passed = append(passed, fmt.Sprintf(
				"generator saturated: load %s started its requests (%s %s%s) %.0f ms late in phase %s (p99; limit %d ms), because %s",
				r.Load, r.Verb, r.Resource, of, r.Lag.P99*1000, p.Name, MaxRequestLag.Milliseconds(), whyLate(p)))
		}
	}
	for _, r := range p.Requests {
		judge(r)
	}
	for _, c := range p.Changes {
		judge(c.Requests)
	}
	return passed
}

// busyGenerator is the fraction of one processor above which the generator itself may be the bottleneck, because one
// goroutine does all the work of a connection.
const busyGenerator = 0.7

// whyLate explains why the generator started requests late in a phase. It says that the rate is too high only if nothing
// else kept the machine busy and the generator used at least busyGenerator CPUs on average.
func whyLate(p result.Phase) string {
	facts, known := machine.Of(p.Machine, p.Seconds(), 0, true)
	if !known {
		return "loadgen had too little CPU for the rate"
	}
	cores := p.Machine.GeneratorSeconds / p.Seconds()
	used := fmt.Sprintf("used %.2f of %d processors", cores, facts.Processors)
	full := (facts.Used+facts.Stolen)/float64(facts.Processors) >= machine.Full
	switch busy := facts.Busy(); {
	case busy != "":
		return "the machine was busy (" + busy + "; loadgen " + used + ")"
	case cores >= busyGenerator:
		return "the rate is too high for this machine (loadgen " + used + ")"
	case full:
		return fmt.Sprintf("loadgen and the control plane together used all %d processors, and loadgen got only %.2f of them", facts.Processors, cores)
	case p.StalledSeconds > 0:
		return fmt.Sprintf("loadgen was stopped or got no CPU for %.1f s (it %s)", p.StalledSeconds, used)
	}
	return "loadgen was stopped or had too little CPU (it " + used + ")"
}

func ownLimits() Limits {
	l := Limits{MemoryBytes: memoryLimit()}
	var rl syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &rl) == nil {
		l.Descriptors = uint64(rl.Cur)
	}
	return l
}
