package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// supervisor is the part of control.Client, the client of a control plane's supervisor, that faults and events need.
type supervisor interface {
	Check(context.Context, control.Fault) error
	Begin(context.Context, control.Fault) (control.FaultStatus, error)
	Clear(context.Context, string) (control.FaultStatus, error)
	Faults(context.Context) ([]control.FaultStatus, error)
	Events(ctx context.Context, after int64) ([]control.Event, error)
}

// clearWithin is the time limit for undoing faults at the end of a phase. The slowest way to undo a fault is to restart
// the etcd members one after another.
const clearWithin = 2 * time.Minute

// refuseFaults returns an error for each fault of the control plane, because Stormglass cannot break a user's control
// plane.
func refuseFaults(s *plan.Plan) error {
	return faultErrors(s, "run it without --kubeconfig, on a bundled control plane")
}

// faultErrors returns an error for each fault that needs a bundled control plane. Each error ends with `hint`.
func faultErrors(s *plan.Plan, hint string) error {
	var errs []error
	for _, f := range s.Faults {
		if !f.OfNodes() || f.Traits().OfCloud {
			errs = append(errs, exitcode.UsageError(s.Errorf(f.Path, hint,
				"fault %s works only on a bundled control plane, because Stormglass does not inject it into your own cluster", f.Kind)))
		}
	}
	return errors.Join(errs...)
}

// checkFaults asks the control plane's supervisor whether each fault is possible. So a fault that is impossible on this
// machine is reported before the run starts.
func checkFaults(ctx context.Context, plane supervisor, s *plan.Plan) error {
	var errs []error
	for _, f := range s.Faults {
		if f.OfNodes() {
			continue
		}
		err := plane.Check(ctx, f.Control(s.Seed))
		var invalid *control.InvalidFault
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &invalid):
			for _, p := range invalid.Problems {
				errs = append(errs, exitcode.UsageError(s.Errorf(f.Path+"."+p.Path, p.Hint, "%s", p.Msg)))
			}
		default:
			errs = append(errs, exitcode.EnvironmentError(s.Errorf(f.Path, "", "%s is not possible here: %v", f.Kind, err)))
		}
	}
	return errors.Join(errs...)
}

// comeback is the maximum time from the end of a fault until the control plane responds again. For example, a fault of
// kind "kill" ends when the process starts again, but the process becomes ready only later.
const comeback = time.Minute

// patience returns how long the run retries a failed action of a scenario. It returns 0 for a scenario without faults
// of the control plane. In such a scenario, a failed action ends the run.
func patience(s *plan.Plan) time.Duration {
	if slices.ContainsFunc(s.Faults, func(f scenario.PlacedFault) bool { return !f.OfNodes() }) {
		return comeback
	}
	return 0
}

// schedule begins the faults of one phase at their times. Faults without a duration end with the phase.
type schedule struct {
	*phases
	start time.Time
	fail  context.CancelCauseFunc // ends the phase if a fault could not be started
	stop  context.CancelFunc      // cancels faults that have not begun
	done  sync.WaitGroup

	mu     sync.Mutex
	open   []string // IDs of the faults that have begun, even if they have ended since
	missed []string // messages about faults that did not begin, because the phase was too short
}

// startFaults schedules the faults of a phase that began at the time `start`. Before it returns, it begins the faults
// of nodes that are due immediately. If a fault cannot begin, it calls `fail`.
func (ps *phases) startFaults(ctx context.Context, p *scenario.Phase, start time.Time, fail context.CancelCauseFunc) *schedule {
	s := &schedule{phases: ps, start: start, fail: fail}
	waiting, stop := context.WithCancel(ctx)
	s.stop = stop
	for i := range p.Faults {
		f := &p.Faults[i]
		for _, after := range f.Times() {
			if f.OfNodes() && after == 0 {
				s.beginOfNodes(ctx, waiting, p, f)
				continue
			}
			s.done.Go(func() { s.at(ctx, waiting, start.Add(after), p, f) })
		}
	}
	return s
}

// at begins the fault f when it is due, unless the context `waiting` ends first. If the phase ends while the request
// for the fault is in flight, `at` waits some seconds for the response: a canceled request might still take effect, and
// the fault might last into the next phase.
func (s *schedule) at(ctx, waiting context.Context, due time.Time, p *scenario.Phase, f *scenario.Fault) {
	kind, _ := control.FaultKindOf(f.Kind)
	if !apiclient.Pause(waiting, time.Until(due.Add(-kind.Lead))) {
		s.miss(due, p, f)
		return
	}
	if f.OfNodes() {
		s.beginOfNodes(ctx, waiting, p, f)
		return
	}
	begun, err := s.begin(ctx, waiting, f)
	if err != nil {
		if ctx.Err() != nil || waiting.Err() != nil {
			s.miss(due, p, f)
		} else {
			s.fail(exitcode.Environmentf("phase %s: fault %s could not be started: %w", p.Name, f.Kind, err))
		}
		return
	}
	s.step("fault: %s", faultLine(begun))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, begun.ID)
}

const askAgain = time.Second

// begin requests a fault. If the request fails and another fault may be the cause, begin repeats it until `waiting`
// ends. For example, a webhook cannot be registered during an etcd election, and a crashed scheduler cannot be paused.
func (s *schedule) begin(ctx, waiting context.Context, f *scenario.Fault) (begun control.FaultStatus, err error) {
	for told := false; ; told = true {
		begun, err = s.supervisor.Begin(ctx, f.Control(s.plan.Seed))
		if err == nil || errors.As(err, new(*control.InvalidFault)) || !s.othersBreak() {
			return begun, err
		}
		if !told {
			s.step("fault not started yet, trying again: %v", err)
		}
		if !apiclient.Pause(waiting, askAgain) {
			return begun, err
		}
	}
}

// othersBreak reports whether another fault may be the cause of a failed request: a fault that has begun in this phase,
// or a fault of an earlier phase that ended so recently that the control plane may not have recovered.
func (s *schedule) othersBreak() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) > 0 || !s.mended.IsZero() && time.Since(s.mended) < comeback
}

func (s *schedule) beginOfNodes(ctx, waiting context.Context, p *scenario.Phase, f *scenario.Fault) {
	hit, err := s.nodes.beginFault(f, s.journal, s.workload)
	if kind, _ := control.FaultKindOf(f.Kind); err == nil && kind.Recovers {
		err = s.returnToService(ctx)
	}
	if err != nil {
		s.fail(exitcode.Environmentf("phase %s: %s could not be started: %w", p.Name, f.Kind, err))
		return
	}
	if f.OutOfService {
		s.done.Go(func() { s.takeOutOfService(ctx, waiting, p, hit) })
	}
}

// takeOutOfService waits until the API server reports all of the nodes, which do not come back by themselves, as
// NotReady. Then it adds the out-of-service taint to them, as an operator would.
func (s *schedule) takeOutOfService(ctx, waiting context.Context, p *scenario.Phase, nodes []string) {
	if err := s.workload.Wait(waiting, func() bool { return s.workload.NotReady(nodes) }); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.missed = append(s.missed, fmt.Sprintf("the run did not mark nodes out of service, because phase %s ended before all of them were NotReady", p.Name))
		return
	}
	s.phases.mu.Lock()
	s.tainted = append(s.tainted, nodes...)
	s.phases.mu.Unlock()
	if err := s.taint(ctx, nodes, true); err != nil {
		s.fail(exitcode.Environmentf("phase %s: %w", p.Name, err))
		return
	}
	detail := fmt.Sprintf("%d nodes marked out of service", len(nodes))
	s.event(time.Now(), result.EventNote, "out of service", detail)
	s.step("%s", detail)
}

// returnToService removes the out-of-service taint from all nodes that have it.
func (s *schedule) returnToService(ctx context.Context) error {
	s.phases.mu.Lock()
	nodes := s.tainted
	s.tainted = nil
	s.phases.mu.Unlock()
	return s.taint(ctx, nodes, false)
}

func (s *schedule) taint(ctx context.Context, nodes []string, out bool) error {
	return load.Parallel(ctx, len(nodes), func(ctx context.Context, i int) error {
		return s.workload.Retry(ctx, func() error { return s.outOfService(ctx, nodes[i], out) })
	})
}

// miss records that a fault never began because its phase was too short. Otherwise gates would pass as if the fault had
// happened.
func (s *schedule) miss(due time.Time, p *scenario.Phase, f *scenario.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missed = append(s.missed, fmt.Sprintf("fault %s, due %s after the start of phase %s, never began, because the phase ended earlier",
		f.Kind, due.Sub(s.start).Round(time.Millisecond), p.Name))
}

// end cancels the faults that have not begun, undoes the active faults, and waits until they are undone. It also works
// if ctx has ended already.
func (s *schedule) end(ctx context.Context) error {
	s.stop()
	s.done.Wait()
	interrupted := ctx.Err() != nil
	ctx, cancel := s.windUp(clearWithin)
	defer cancel()
	var clears sync.WaitGroup
	errs := make([]error, len(s.open))
	for i, id := range s.open {
		clears.Go(func() {
			ended, err := s.supervisor.Clear(ctx, id)
			if err == nil && ended.Error != "" {
				err = errors.New(ended.Error)
			}
			if err != nil {
				errs[i] = exitcode.Environmentf("fault %s could not be undone: %w", id, err)
			}
		})
	}
	clears.Wait()
	if len(s.open) > 0 {
		s.mended = time.Now()
	}
	for _, m := range s.missed {
		if !interrupted { // after an interrupt, missing faults need no explanation
			s.step("%s", m)
		}
	}
	s.phases.missed = append(s.phases.missed, s.missed...)
	return errors.Join(errs...)
}
