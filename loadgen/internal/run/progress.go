package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Progress shows the user what the run does. Its methods may be called concurrently.
type Progress = interface {
	// Step shows one line about an action of the run.
	Step(line string)
	// Live shows the state of the run, once a second.
	Live(Snapshot)
}

// Snapshot is the state of a run at one point in time, for display.
type Snapshot struct {
	// Phase is the name of the current phase. It is empty before the first phase, scenario.Teardown during the
	// teardown, and Ending after that.
	Phase string
	// Elapsed is the time since the start of the phase. Length is the duration of the phase or, if the phase has a
	// condition, its time limit; 0 means unknown.
	Elapsed, Length time.Duration
	Until           string
	// Offered is the rate of due requests in the last second, and Achieved the rate of completed requests, both per second.
	// P99 is the 99th percentile of the latency of completed requests, measured from the time at which each was due.
	Offered, Achieved     float64
	P99                   time.Duration
	Nodes, NodesReady     int
	PodsWanted, PodsReady int64
	WatchesOpen           int
	// Delivered is the number of watch events delivered since the start of the run.
	Delivered int64
	// Scenario is the scenario's name, Dir the run's directory.
	Scenario, Dir string
	// Phases are the phases of the scenario, in order.
	Phases []PhaseState
	// Paused is how long the current pause of the load has lasted in this phase; 0 means not paused.
	Paused time.Duration
	// Faults describes the active faults.
	Faults []string
	// Stops are the conditions that end the run early. Gates is the number of gates that judge the run at its end.
	Stops []StopState
	Gates int
	// Failure is the reason why the environment failed; empty means it has not failed. After a failure the state of
	// nodes, pods and watches is unknown.
	Failure string
}

// Ending is Snapshot.Phase while the run stops loads and nodes, and removes its objects.
const Ending = "ending"

// String formats the state in one line.
func (s Snapshot) String() string {
	if s.Failure != "" {
		return "failed: " + s.Failure
	}
	var b strings.Builder
	switch {
	case s.Phase == "":
		fmt.Fprint(&b, "getting ready")
	case s.Length == 0:
		fmt.Fprintf(&b, "%s %s", s.Phase, Clock(s.Elapsed))
	default:
		fmt.Fprintf(&b, "%s %s/%s", s.Phase, Clock(s.Elapsed), Clock(s.Length))
	}
	if s.Paused > 0 {
		fmt.Fprintf(&b, " | load paused for %s", Clock(s.Paused))
	}
	if s.Offered > 0 {
		fmt.Fprintf(&b, " | %.0f/s offered, %.0f/s achieved, p99 %s", s.Offered, s.Achieved, s.P99.Round(100*time.Microsecond))
	}
	if s.Nodes > 0 {
		fmt.Fprintf(&b, " | nodes %d/%d Ready", s.NodesReady, s.Nodes)
	}
	if s.PodsWanted > 0 {
		fmt.Fprintf(&b, " | pods %d/%d Ready", s.PodsReady, s.PodsWanted)
	}
	if s.WatchesOpen > 0 {
		fmt.Fprintf(&b, " | %d watches, %d events", s.WatchesOpen, s.Delivered)
	}
	return b.String()
}

// Clock formats a duration as minutes and seconds, such as "02:05".
func Clock(d time.Duration) string {
	s := int(d / time.Second)
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// PhaseState is the state of a phase of the scenario during a run. Took is the phase's duration; it is 0 until the
// phase has ended.
type PhaseState struct {
	Name       string
	Length     time.Duration // duration of the phase, or the time limit of its condition
	Until      string        // condition that ends the phase; empty if it ends after Length
	Now        bool
	Took       time.Duration
	EndedEarly bool // the user ended the phase early
	Paused     bool // the user paused the load for a part of the phase
}

// StopState is a condition that ends a run early. Text is in the syntax of scenario.ParseAbort. Blind is the reason
// why the condition has never had data; it is empty if the condition has had data or was not evaluated yet.
type StopState struct{ Text, Blind string }

type display struct {
	progress Progress
	loads    *loads
	nodes    *nodes
	workload *workload.Workload
	timeline *timeline.Writer
	aborts   *aborts
	steering *steering
	fixed    Snapshot      // snapshot with the fields that do not change during the run
	news     chan struct{} // channel on which a value requests an immediate snapshot

	mu      sync.Mutex
	current *scenario.Phase
	start   time.Time
	phases  []PhaseState
	failure string
	last    Snapshot
}

func newDisplay(r *run) *display {
	d := &display{
		progress: r.Progress, loads: r.loads, nodes: r.nodes, workload: r.workload, timeline: r.timeline, aborts: r.aborts, news: make(chan struct{}, 1),
		fixed: Snapshot{Scenario: r.plan.Name, Dir: r.dir.Path, Gates: len(r.plan.Gates)},
	}
	for i := range r.plan.Phases {
		p := &r.plan.Phases[i]
		d.phases = append(d.phases, PhaseState{Name: p.Name, Length: lengthOf(p), Until: p.Until.String()})
	}
	d.fixed.Phases = d.phases
	d.last = d.fixed
	return d
}

// lengthOf returns the duration of a phase or, if the phase has a condition, its time limit.
func lengthOf(p *scenario.Phase) time.Duration {
	if !p.Until.IsZero() {
		return p.Within.D()
	}
	return p.For.D()
}

func (d *display) beginPhase(p *scenario.Phase, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.current, d.start = p, at
	d.change(p.Name, func(s *PhaseState) { s.Now = true })
}

// beginStage shows a stage after the phases, such as Ending, like a phase of unknown length.
func (d *display) beginStage(name string) { d.beginPhase(&scenario.Phase{Name: name}, time.Now()) }

// fail shows that the environment has failed and that no phase is in progress. On a nil display it does nothing.
func (d *display) fail(why string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.failure = why
	d.phases = slices.Clone(d.phases)
	for i := range d.phases {
		d.phases[i].Now = false
	}
	d.mu.Unlock()
	d.changed()
}

func (d *display) endPhase(stamp result.Phase) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.change(stamp.Name, func(s *PhaseState) {
		s.Now, s.Took = false, max(stamp.End.Sub(stamp.Start), time.Millisecond)
		s.EndedEarly, s.Paused = stamp.EndedEarly, stamp.PausedSeconds > 0
	})
}

// change applies f to the state of the phase with that name. It works on a copy of d.phases, because older snapshots share
// that slice. The caller holds mu.
func (d *display) change(name string, f func(*PhaseState)) {
	d.phases = slices.Clone(d.phases)
	for i := range d.phases {
		if d.phases[i].Name == name {
			f(&d.phases[i])
		}
	}
}

// changed requests an immediate snapshot. It does not block.
func (d *display) changed() {
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// run shows a snapshot once a second, and immediately after each call of changed.
func (d *display) run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.progress.Live(d.snapshot(time.Now())) // remains visible while the run ends
			return nil
		case now := <-tick.C:
			d.last = d.snapshot(now)
		case <-d.news:
			d.steered(&d.last) // keeps the rates of the last second
		}
		d.progress.Live(d.last)
	}
}

// every calls f at each interval until f returns false or ctx ends.
func every(ctx context.Context, interval time.Duration, f func() (goOn bool)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !f() {
			return
		}
	}
}

func (d *display) snapshot(now time.Time) Snapshot {
	d.mu.Lock()
	p, start := d.current, d.start
	d.mu.Unlock()
	s := d.fixed
	if p != nil {
		s.Phase, s.Until, s.Elapsed, s.Length = p.Name, p.Until.String(), now.Sub(start), lengthOf(p)
	}
	d.loads.snapshot(&s)
	s.Nodes, s.NodesReady = d.nodes.live()
	w := d.workload.Live()
	s.PodsWanted, s.PodsReady = w.PodsWanted, w.PodsReady
	d.steered(&s)
	s.Stops = d.aborts.states()
	for _, f := range d.timeline.InForce() {
		s.Faults = append(s.Faults, f.String())
	}
	return s
}

// steered updates the fields of a snapshot that may change before the next full snapshot: the pause, the phases and the
// failure.
func (d *display) steered(s *Snapshot) {
	s.Paused = 0
	if since := d.steering.pausedSince(); !since.IsZero() {
		s.Paused = max(time.Since(since), time.Millisecond)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Phases = d.phases
	if s.Failure = d.failure; s.Failure != "" {
		s.Nodes, s.NodesReady, s.PodsWanted, s.PodsReady, s.WatchesOpen = 0, 0, 0, 0, 0
	}
}

// console shows steps to the user, and knows whether the user still waits for work to complete.
type console struct {
	Progress
	hurry <-chan struct{} // closed when the user no longer waits (second signal); nil if the user always waits
}

func (c console) step(format string, args ...any) { c.Step(fmt.Sprintf(format, args...)) }

func (c console) waiting(what string) (done func()) { return cluster.Waiting(c.Step, what) }

func (c console) hurried() bool {
	select {
	case <-c.hurry:
		return true
	default:
		return false
	}
}

func (c console) patient() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-c.hurry:
			cancel()
		case <-ctx.Done():
		}
	}()
	if c.hurried() {
		cancel()
	}
	return ctx, cancel
}

// windUp returns a context for work after the phases or after an interrupt. It ends after limit, or when the user no longer
// waits.
func (c console) windUp(limit time.Duration) (context.Context, context.CancelFunc) {
	patient, stop := c.patient()
	ctx, cancel := context.WithTimeout(patient, limit)
	return ctx, func() {
		cancel()
		stop()
	}
}

// announceSignals tells the user the effect of each signal when it arrives. The first signal ends ctx. The caller calls
// `stop` at the end of the run.
func (c console) announceSignals(ctx context.Context, inUserCluster bool) (stop func()) {
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		removes := ""
		if inUserCluster {
			removes = " and removing the objects created in your cluster"
		}
		c.step("interrupted: shutting down cleanly%s; a second signal skips all waiting", removes)
		select {
		case <-c.hurry:
			c.step("second signal: not waiting any longer")
		case <-over:
		}
	})
	return func() {
		close(over)
		telling.Wait()
	}
}
