package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/follow"
	"github.com/stormglass/stormglass/loadgen/internal/generator"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/objects"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// errConditionNotMet is the error of a phase whose condition never held. The run then skips the remaining phases,
// because they would not start from the state that the scenario expects.
var errConditionNotMet = errors.New("condition not met")

type phases struct {
	journal
	plan       *plan.Plan
	supervisor supervisor // supervisor of the control plane; nil if the target supports no faults
	recorder   recorder
	self       *generator.SelfMeter
	tracer     *spans.Tracer // tracer of requests; nil if no request is traced
	workload   *workload.Workload
	follow     *follow.Follower
	nodes      *nodes
	loads      *loads
	custom     *custom
	display    *display
	create     func(context.Context, scenario.Manifest) error
	objects    *objects.Objects
	// awaitServed waits until the API server serves the custom resources that the given objects define.
	awaitServed func(ctx context.Context, objects []scenario.Manifest) error
	// outOfService adds the out-of-service taint to a node, or removes it.
	outOfService func(ctx context.Context, node string, out bool) error
	save         func() error // writes the measurements; called after each phase
	profiler     *profiler
	hooks        *hooks
	aborts       *aborts
	steering     *steering

	stamps []result.Phase // phases that have ended, with their measurements
	missed []string       // messages about faults that never began
	mended time.Time      // when the last fault of an earlier phase was undone

	mu      sync.Mutex
	tainted []string       // nodes with the out-of-service taint
	idled   map[string]int // number of times that each message about an action that had nothing to do was recorded
	work    []*asked       // measurements of the actions in the current phase
}

func (ps *phases) run(ctx context.Context) error {
	for i := range ps.plan.Phases {
		p := &ps.plan.Phases[i]
		if err := ps.hooks.run(ctx, ps.plan, p.Name, "before"); err != nil {
			return err
		}
		err := ps.phase(ctx, p)
		if ctx.Err() == nil { // also after a failed phase, because hooks may save evidence
			err = ending(err, ps.hooks.run(ctx, ps.plan, p.Name, "after"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// phase runs one phase: it scrapes, starts the loads, actions and faults, waits for the end and scrapes again. The
// phase's start and end are the times of these scrapes, so that PromQL over the time between them covers exactly the
// phase.
func (ps *phases) phase(ctx context.Context, p *scenario.Phase) (err error) {
	loads := ps.loads.of(p.Name)
	start, err := ps.recorder.ScrapeNow(ctx)
	if err != nil {
		return causeOf(ctx, err)
	}
	ps.beginPhase(ctx, p, start)
	stalled := ps.self.Stalls().Total(time.Now())
	machine := generator.MeasureMachine()
	stamp := result.Phase{Name: p.Name, Start: start, Until: p.Until.String()}
	defer func() {
		// A failed phase counts as interrupted too, so that no gate can pass on it.
		stamp.Interrupted = ctx.Err() != nil || err != nil && !errors.Is(err, errConditionNotMet)
		stamp.Actions = ps.worked()
		ps.stamps = append(ps.stamps, stamp)
		ps.display.endPhase(stamp)
		err = errors.Join(err, ps.save())
	}()

	// Start the loads before the actions and faults, so that the loads measure all effects.
	stop := ps.loads.start(loads)
	profiles := ps.profiler.start(ctx, p, start)
	stamp.ConditionMet, err = ps.through(ctx, p, start)
	if p.Until.OfObjects() && !stamp.ConditionMet {
		stamp.Reached = ps.follow.Describe(p.Name)
	}
	profiles.stop()
	ps.aborts.endPhase()
	err = errors.Join(err, stop())
	// Scrape at the end even after an interrupt, which has ended ctx.
	windUp, cancel := ps.windUp(windUpTimeout)
	defer cancel()
	end, scrapeErr := ps.recorder.ScrapeNow(windUp)
	stamp.End = end
	if scrapeErr != nil {
		stamp.End = time.Now()
	}
	paused, early := ps.steering.endPhase(stamp.End)
	stamp.PausedSeconds, stamp.EndedEarly = paused.Seconds(), early && !stamp.ConditionMet
	stamp.StalledSeconds = (ps.self.Stalls().Total(time.Now()) - stalled).Seconds()
	stamp.Machine = machine()
	ps.event(stamp.End, result.EventPhaseEnd, p.Name, conditionDetail(p, stamp))
	profiles.wait()
	ps.loads.drain(ctx, loads)
	stamp.Custom = ps.custom.endPhase(windUp)
	if err = errors.Join(err, scrapeErr); err != nil {
		return causeOf(ctx, err)
	}
	if !p.Until.IsZero() && !stamp.ConditionMet && !stamp.EndedEarly {
		ps.step("phase %s: condition %s was not met within %s%s; all later phases are skipped", p.Name, p.Until, p.Within, reached(stamp))
		return errConditionNotMet
	}
	return nil
}

func conditionDetail(p *scenario.Phase, stamp result.Phase) string {
	took := stamp.End.Sub(stamp.Start).Round(time.Millisecond)
	switch {
	case stamp.EndedEarly:
		return fmt.Sprintf("ended early by the user, after %s", took)
	case p.Until.IsZero():
		return ""
	case stamp.ConditionMet:
		return fmt.Sprintf("%s after %s", p.Until, took)
	}
	return fmt.Sprintf("%s not met within %s%s", p.Until, took, reached(stamp))
}

// reached says, in parentheses, how close a condition on objects came to being met. It returns "" for other conditions.
func reached(stamp result.Phase) string {
	if stamp.Reached == "" {
		return ""
	}
	return " (" + stamp.Reached + ")"
}

func (ps *phases) beginPhase(ctx context.Context, p *scenario.Phase, at time.Time) {
	ps.loads.beginPhase(p.Name, at)
	ps.tracer.BeginPhase(p.Name, at)
	ps.self.BeginPhase(p.Name)
	ps.workload.BeginPhase(p.Name, at)
	ps.follow.BeginPhase(p.Name)
	ps.display.beginPhase(p, at)
	ps.steering.beginPhase(p.Name, at)
	ps.custom.beginPhase(ctx, p.Name)
	ps.aborts.beginPhase(p.Name, at)
	ps.event(at, result.EventPhaseStart, p.Name, "")
	switch {
	case !p.Until.IsZero():
		ps.step("phase %s: until %s, at most %s", p.Name, p.Until, p.Within)
	default:
		ps.step("phase %s: for %s", p.Name, p.For)
	}
}

func (ps *phases) actions(ctx context.Context, p *scenario.Phase) error {
	for i, a := range p.Actions {
		if a.Later() {
			continue
		}
		if a.OnObjects() {
			within, work := ps.ask(ctx, p, i)
			work.Rounds = 1
			if err := ps.actOnObjects(within, p.Name, actionPath(p, i), &p.Actions[i]); err != nil {
				return exitcode.Environmentf("phase %s: %w", p.Name, err)
			}
			continue
		}
		ps.event(time.Now(), result.EventAction, actionText(a), actionDetail(a))
		each := a.Each()
		if err := load.Parallel(ctx, len(each), func(ctx context.Context, i int) error { return ps.act(ctx, each[i]) }); err != nil {
			return exitcode.Environmentf("phase %s: %w", p.Name, err)
		}
	}
	return nil
}

func (ps *phases) act(ctx context.Context, a scenario.Action) error {
	if a.Kind == "create" {
		all := a.Manifest().Objects()
		return load.Parallel(ctx, len(all), func(ctx context.Context, i int) error {
			return ps.workload.Retry(ctx, func() error { return ps.create(ctx, all[i]) })
		})
	}
	if a.Kind == "custom" {
		return ps.custom.do(ctx, a.Name)
	}
	return ps.workload.Do(ctx, a)
}

// through starts the phase's faults, performs its actions, waits for its end, and undoes the faults that end with it.
// It reports whether the phase's condition held. The caller must then stop the loads, which also waits for their
// requests in flight. Faults do not wait for actions: an action may take a minute on a control plane that has just lost
// a component, and a repeated fault would then start several times in one burst.
func (ps *phases) through(ctx context.Context, p *scenario.Phase, start time.Time) (bool, error) {
	within, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	faults := ps.startFaults(within, p, start, fail)
	met, err := false, ps.actions(within, p)
	endLater := ps.startLater(within, p, start, fail)
	if err == nil {
		met, err = ps.awaitEnd(within, p, start)
	}
	if err != nil {
		err = causeOf(within, err)
	}
	endLater()
	undone := faults.end(ctx)
	if undone != nil && ctx.Err() != nil {
		ps.step("%v", undone) // a failed clean-up does not change the outcome of an interrupted run
	}
	return met, errors.Join(err, undone)
}

func actionText(a scenario.Action) string {
	if a.Kind == "create" {
		return "create " + a.Manifest().String()
	}
	return a.Kind + " " + a.Name
}

func actionDetail(a scenario.Action) string {
	switch a.Kind {
	case "create":
		if a.Count > 1 {
			return fmt.Sprintf("%d objects", a.Count)
		}
	case "deploy":
		return deployDetail(a)
	case "scale":
		return fmt.Sprintf("%d replicas", a.Replicas)
	case "demand":
		return fmt.Sprintf("%s CPUs", a.CPU)
	case "rollingUpdate":
		if a.MaxSurge == "" {
			return "maxUnavailable " + cmp.Or(a.MaxUnavailable, "1")
		}
		return fmt.Sprintf("maxSurge %s, maxUnavailable %s", a.MaxSurge, a.MaxUnavailable)
	}
	return ""
}

func deployDetail(a scenario.Action) string {
	pods := fmt.Sprintf("%d replicas", a.Replicas)
	switch kind := a.WorkloadKind(); kind {
	case scenario.Deployment:
		return pods
	case scenario.DaemonSet:
		return "DaemonSet"
	case scenario.StatefulSet:
		return kind + ", " + pods
	default:
		return fmt.Sprintf("%s, %d completions of %s", kind, a.Replicas, a.RunFor)
	}
}

// awaitEnd waits until the phase has lasted its full time since start, its condition holds, or the user ends it. It
// reports whether the condition held.
func (ps *phases) awaitEnd(ctx context.Context, p *scenario.Phase, start time.Time) (bool, error) {
	asked := ps.steering.asked()
	defer ps.steering.phaseOver()
	if p.Until.IsZero() {
		timer := time.NewTimer(time.Until(start.Add(p.For.D())))
		defer timer.Stop()
		select {
		case <-timer.C:
			return false, nil
		case <-asked.Done():
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	within, cancel := context.WithDeadline(ctx, start.Add(p.Within.D()))
	defer cancel()
	defer context.AfterFunc(asked, cancel)()
	var err error
	switch p.Until.Text {
	case "podsReady":
		awaited := ps.plan.Awaited(p)
		err = ps.workload.Wait(within, func() bool { return ps.workload.AllPodsReady(awaited...) })
	case "nodesReady":
		err = ps.workload.Wait(within, func() bool { return ps.workload.NodesReady(ps.nodes.fleet.Names()) })
	case "nodesNotReady":
		err = ps.workload.Wait(within, ps.workload.AllNotReady)
	case "watchesOpen":
		err = ps.loads.awaitOpen(within)
	case "objectsMade":
		err = ps.loads.awaitMade(within)
	case "resourcesServed":
		err = ps.awaitServed(within, p.Manifests())
	default:
		err = ps.follow.Wait(within, p.Name)
	}
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || asked.Err() != nil):
		return false, nil
	}
	return false, err
}
