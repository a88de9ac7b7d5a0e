package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// errConditionNotMet ends the phases: what comes after a condition that never
// held would measure something else than the scenario says.
var errConditionNotMet = errors.New("condition not met")

// phases runs the scenario's phases in order and fills in r.m.Phases.
func (r *run) phases(ctx context.Context) error {
	for i := range r.scenario.Phases {
		if err := r.phase(ctx, &r.scenario.Phases[i]); err != nil {
			return err
		}
	}
	return nil
}

// phase stamps the start, does what the scenario says, waits for the end and
// stamps it. Both stamps are scrapes, so that what PromQL sees between them is
// exactly the phase.
func (r *run) phase(ctx context.Context, p *scenario.Phase) (err error) {
	loads := r.loads.of(p.Name)
	start, err := r.recorder.ScrapeNow(ctx)
	if err != nil {
		return r.ended(ctx, err)
	}
	r.beginPhase(p, start)
	stalled := r.self.Stalls().Total(time.Now())
	stamp := result.Phase{Name: p.Name, Start: start, Until: p.Until}
	defer func() {
		// A phase that failed is cut short too: no gate may pass on it.
		stamp.Interrupted = ctx.Err() != nil || err != nil && !errors.Is(err, errConditionNotMet)
		r.m.Phases = append(r.m.Phases, stamp)
		err = errors.Join(err, r.save())
	}()

	// The loads begin before the storm, so that they see all of it.
	stop := r.loads.start(loads)
	stamp.ConditionMet, err = r.through(ctx, p, start)
	err = errors.Join(err, stop())
	// The end is stamped even when the user has interrupted: ctx is gone then.
	windUp, cancel := r.windUp(windUpTimeout)
	defer cancel()
	end, scrapeErr := r.recorder.ScrapeNow(windUp)
	stamp.End = end
	if scrapeErr != nil {
		stamp.End = time.Now()
	}
	stamp.StalledSeconds = (r.self.Stalls().Total(time.Now()) - stalled).Seconds()
	r.event(stamp.End, result.EventPhaseEnd, p.Name, conditionDetail(p, stamp))
	r.loads.drain(ctx, loads)
	if err = errors.Join(err, scrapeErr); err != nil {
		return r.ended(ctx, err)
	}
	if p.Until != "" && !stamp.ConditionMet {
		r.step("phase %s: %s did not hold within %s; the phases after it are not run", p.Name, p.Until, p.Within)
		return errConditionNotMet
	}
	return nil
}

func conditionDetail(p *scenario.Phase, stamp result.Phase) string {
	took := stamp.End.Sub(stamp.Start).Round(time.Millisecond)
	switch {
	case p.Until == "":
		return ""
	case stamp.ConditionMet:
		return fmt.Sprintf("%s after %s", p.Until, took)
	}
	return fmt.Sprintf("%s not met in %s", p.Until, took)
}

func (r *run) beginPhase(p *scenario.Phase, at time.Time) {
	r.loads.beginPhase(p.Name, at)
	r.self.BeginPhase(p.Name)
	r.workload.BeginPhase(p.Name, at)
	r.live.phase(p, at)
	r.event(at, result.EventPhaseStart, p.Name, "")
	switch {
	case p.Until != "":
		r.step("phase %s: until %s, within %s", p.Name, p.Until, p.Within)
	default:
		r.step("phase %s: for %s", p.Name, p.For)
	}
}

// actions does the phase's actions, in the order of the file.
func (r *run) actions(ctx context.Context, p *scenario.Phase) error {
	for _, a := range p.Actions {
		r.event(time.Now(), result.EventAction, a.Kind+" "+a.Name, actionDetail(a))
		if err := r.workload.Do(ctx, a); err != nil {
			return exitcode.Environmentf("phase %s: %w", p.Name, err)
		}
	}
	return nil
}

// through begins the clock of the phase's faults, does its actions, waits for its
// end and undoes the faults that end with it: before its loads are stopped, which
// wait for what is in flight. The faults do not wait for the actions: those may
// take a minute on a plane that has just lost a part of itself, and what comes
// every ten seconds would come all at once.
func (r *run) through(ctx context.Context, p *scenario.Phase, start time.Time) (bool, error) {
	within, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	faults := r.startFaults(within, p, start, fail)
	met, err := false, r.actions(within, p)
	if err == nil {
		met, err = r.awaitEnd(within, p, start)
	}
	if err != nil {
		err = r.ended(within, err)
	}
	undone := faults.end(ctx)
	if undone != nil && ctx.Err() != nil {
		r.step("%v", undone) // its errors do not decide an interrupted run
	}
	return met, errors.Join(err, undone)
}

func actionDetail(a scenario.Action) string {
	switch a.Kind {
	case "deploy", "scale":
		return fmt.Sprintf("%d replicas", a.Replicas)
	case "rollingUpdate":
		return fmt.Sprintf("maxSurge %s, maxUnavailable %s", a.MaxSurge, a.MaxUnavailable)
	}
	return ""
}

// awaitEnd waits until the time of the phase that began at start is over or its
// condition holds, and tells whether the condition did.
func (r *run) awaitEnd(ctx context.Context, p *scenario.Phase, start time.Time) (bool, error) {
	if p.Until == "" {
		timer := time.NewTimer(time.Until(start.Add(p.For.D())))
		defer timer.Stop()
		select {
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	within, cancel := context.WithDeadline(ctx, start.Add(p.Within.D()))
	defer cancel()
	var err error
	switch p.Until {
	case "podsReady":
		err = r.workload.Wait(within, r.workload.AllPodsReady)
	case "nodesReady":
		err = r.workload.Wait(within, func() bool { return r.workload.NodesReady(r.fleet.Names()) })
	case "nodesNotReady":
		err = r.workload.Wait(within, r.workload.AllNotReady)
	case "watchesOpen":
		err = r.loads.awaitOpen(within)
	}
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return false, nil
	}
	return false, err
}
