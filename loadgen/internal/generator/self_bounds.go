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

// A generator past these bounds is saturated: its measurements say as much about itself as about the cluster. Garbage
// collection is reported but not judged: where it costs too much, timers and read loops are late.
const (
	// MaxSchedulingLag bounds the p99 of how late our timer fires: a tenth of the 1 s objective that latencies from the
	// intended start are most often judged by. Within the bound, our own delay changes no verdict that was not on edge.
	MaxSchedulingLag = 100 * time.Millisecond
	// MaxRequestLag bounds the p99 of a load's own lag, from an arrival's intended start until its processing begins.
	// Lag is part of the judged latency: the same tenth, for the same reason.
	MaxRequestLag = MaxSchedulingLag
	// leastRequests is the fewest requests whose p99 is more than one unlucky request.
	leastRequests = 100
	// leastLate is the number of late ticks in one phase that are more than a single hiccup: half a second. A shorter
	// stall is subtracted from each request (package stall).
	leastLate = 50
	// MaxMemoryShare is the share of the memory that we may use. Past it the kernel reclaims pages that are in use, or
	// kills.
	MaxMemoryShare = 0.8
	// MaxDescriptorShare is the share of our own descriptor limit. Past it a burst of connections fails here and looks
	// like a fault of the cluster.
	MaxDescriptorShare = 0.9
	// MaxStandingBacklog bounds the bytes that have arrived and are unread at each of standingLooks looks in a row, a
	// second apart. A burst is no fault: 20,000 watches of one object turn a write into 30 MB, and these are gone at
	// the next look or the one after. A generator that keeps up has next to no backlog sooner or later; one that always
	// has a backlog reads all events late. The bound is the data of a fast flow (100 MB/s) in 10 ms. It cannot be much
	// higher, because the kernel holds little unread data: about 64 KB per connection.
	MaxStandingBacklog = 1 << 20
	standingLooks      = 10
)

// Limits holds the resources that the generator may use. Zero means unknown: not judged.
type Limits struct {
	MemoryBytes int64
	Descriptors uint64
}

// longestLag is the range of the timer's lateness.
const longestLag = time.Minute

// phaseFitness is the generator's fitness in one phase.
type phaseFitness struct {
	name     string // empty: before the first phase
	lag      *latency.Histogram
	max      result.Generator // its maxima
	standing standing
}

func newPhaseFitness(name string) *phaseFitness {
	return &phaseFitness{name: name, lag: latency.New(longestLag)}
}

// saturation returns the bounds that were passed in the phase.
func (p *phaseFitness) saturation(l Limits) []string {
	g := p.max
	if g.SchedulingLag = p.lag.Latency(); p.lag.CountOver(MaxSchedulingLag) < leastLate {
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

// Saturation returns one line for each bound that the generator passed.
func Saturation(g result.Generator, l Limits) []string {
	return prefixed("generator saturated: ", passedBounds(g, l))
}

func passedBounds(g result.Generator, l Limits) []string {
	var passed []string
	add := func(format string, args ...any) { passed = append(passed, fmt.Sprintf(format, args...)) }
	if lag := g.SchedulingLag; lag.Count > 0 && lag.P99 > MaxSchedulingLag.Seconds() {
		add("its timers fired %.0f ms late (p99), the bound is %d ms: it was stopped, or the machine has too little CPU for it",
			lag.P99*1000, MaxSchedulingLag.Milliseconds())
	}
	if limit := MaxMemoryShare * float64(l.MemoryBytes); limit > 0 && float64(g.MaxRSSBytes) > limit {
		add("it used %d MB of memory, the bound is %.0f MB (%.0f%% of what there is)",
			g.MaxRSSBytes/1e6, limit/1e6, MaxMemoryShare*100)
	}
	if limit := MaxDescriptorShare * float64(l.Descriptors); limit > 0 && float64(g.MaxDescriptors) > limit {
		add("it had %d descriptors open, the bound is %.0f (%.0f%% of its limit)",
			g.MaxDescriptors, limit, MaxDescriptorShare*100)
	}
	return passed
}

// standing is the largest backlog that was present at each of standingLooks looks in a row. The zero value is ready.
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

// passedBound returns a line if the backlog is past the bound.
func (s *standing) passedBound() []string {
	if s.most <= MaxStandingBacklog {
		return nil
	}
	return []string{fmt.Sprintf(
		"for %d s at least %.1f MB of answers and events had come and were not read, the bound is %.1f MB: it has too little CPU for them",
		standingLooks, float64(s.most)/1e6, MaxStandingBacklog/1e6)}
}

// LoadSaturation reports the loads of a phase whose latencies cannot be judged, because our own delay sent them too
// late. Verbs and tenants of one load have a line each.
func LoadSaturation(p result.Phase) []string {
	var passed []string
	judge := func(r result.Requests) {
		if r.Lag.Count >= leastRequests && r.Lag.P99 > MaxRequestLag.Seconds() {
			of := ""
			if r.Tenant != "" {
				of = " as " + r.Tenant
			}
			passed = append(passed, fmt.Sprintf(
				"generator saturated: load %s, %s %s%s, phase %s: requests were taken up %.0f ms late (p99), the bound is %d ms: %s",
				r.Load, r.Verb, r.Resource, of, p.Name, r.Lag.P99*1000, MaxRequestLag.Milliseconds(), whyLate(p)))
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

// busyGenerator is the share of one processor past which the generator may have been the limit itself: one goroutine
// does all work of a connection.
const busyGenerator = 0.7

// whyLate explains why the generator started requests late in a phase. It blames the rate only if the generator used a
// processor for most of the time.
func whyLate(p result.Phase) string {
	facts, known := machine.Of(p.Machine, p.Seconds(), 0, true)
	if !known {
		return "this process had too little CPU for the rate"
	}
	cores := p.Machine.GeneratorSeconds / p.Seconds()
	used := fmt.Sprintf("used %.2f of %d processors", cores, facts.Processors)
	full := (facts.Used+facts.Stolen)/float64(facts.Processors) >= machine.Full
	switch busy := facts.Busy(); {
	case busy != "":
		return "the machine held this process up: " + busy + "; it " + used
	case cores >= busyGenerator:
		return "the rate is too high for this machine: this process " + used
	case full:
		return fmt.Sprintf("this process had too little CPU: with the control plane it used all %d processors, %.2f of them itself", facts.Processors, cores)
	case p.StalledSeconds > 0:
		return fmt.Sprintf("this process was stopped, or got no processor, for %.1f s: it %s", p.StalledSeconds, used)
	}
	return "this process was stopped, or had too little CPU: it " + used
}

// ownLimits reads the memory and descriptor limits of this process.
func ownLimits() Limits {
	l := Limits{MemoryBytes: memoryLimit()}
	var rl syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &rl) == nil {
		l.Descriptors = uint64(rl.Cur)
	}
	return l
}
