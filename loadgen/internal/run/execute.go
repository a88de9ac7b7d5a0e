package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/generator"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/result"
)

// execute runs the phases. Helpers that record metrics, show progress and watch conditions run concurrently. At the
// end, execute always stops the loads, the nodes and the helpers, in this order. It records failures in r.info.
func (r *run) execute(parent, watched context.Context) {
	ctx, cancel := context.WithCancelCause(watched)
	defer cancel(nil)
	defer context.AfterFunc(r.target.lost, func() { r.display.fail(context.Cause(r.target.lost).Error()) })()
	beside, stop := r.patient()
	var helpers errgroup.Group
	events := follower{journal: r.journal, supervisor: r.target.supervisor, after: r.target.eventsBefore, told: r.target.faultsBefore, moves: followMoves(r.target.Versions), restarted: r.delays.Restarted}
	for _, e := range r.target.leadersBefore {
		events.recordEvent(e)
	}
	all := map[string]func(context.Context) error{
		"recorder": r.archiver.Run, "tracker": r.workload.Run, "self meter": r.self.Run, "progress": r.display.run,
		"pulse": r.samples.Run, "reading the control plane's events": events.follow,
		"abortOn": func(ctx context.Context) error { return r.phases.aborts.watch(ctx, r.archiver, cancel) },
		"workers": r.fleet.Watch, "traces": func(ctx context.Context) error { return r.tracing.run(ctx, r.dir.Path) },
	}
	if r.follow != nil {
		all["watching objects for conditions and transitions"] = r.follow.Run
	}
	for name, f := range all {
		helpers.Go(func() error {
			err := f(beside)
			if err != nil && beside.Err() == nil {
				cancel(exitcode.Environmentf("%s: %w", name, err)) // the other helpers run until the end of the run
			}
			return nil
		})
	}
	err := r.save()
	if err == nil {
		err = r.storm(ctx)
	}
	var aborted abortError
	switch {
	case parent.Err() == nil && errors.As(context.Cause(ctx), &aborted):
		r.info.Aborted = aborted.Error()
	case parent.Err() == nil && r.fleet.Failed() != nil:
		r.loseWorker(r.fleet.Failed())
	case parent.Err() != nil:
		r.info.Interrupted = true
		r.event(time.Now(), result.EventNote, "interrupted", "")
	case err != nil && !errors.Is(err, errConditionNotMet):
		r.endBy(r.target.firstCause(parent, err))
	}
	r.tearDown()
	r.display.beginStage(Ending)
	windUp, cancelWindUp := r.windUp(windUpLimit(r.target.isLost(), lostStopTimeout))
	defer cancelWindUp()
	r.loads.stopAll()
	r.loads.finish(ctx, r.step)
	r.nodes.stop(windUp)
	r.fleet.End()
	r.tracing.settle(windUp)
	stop()
	_ = helpers.Wait() // each helper has passed its error to cancel
	r.o.Control.detach()
	if r.info.RemoteWrite = r.archiver.sent(); r.info.RemoteWrite != nil {
		r.step("remote write: %d samples sent to %s", r.info.RemoteWrite.Sent, r.info.RemoteWrite.URL)
	}
	events.last(windUp)
	r.info.MissedFaults = append(r.phases.missed, events.lost...)
	r.info.Versions.Moves = events.moves.list()
	r.info.Warnings = slices.Concat(r.info.Warnings, r.phases.aborts.blind(), r.phases.idles(), r.loads.unserved(), r.tracing.warnings())
	if taken := r.target.lockTaken(); taken != "" {
		r.info.Warnings = append(r.info.Warnings, taken)
	}
	r.info.Profiles, r.info.Hooks = r.phases.profiler.all(), r.phases.hooks.ran
	r.target.unwatch()
}

func (r *run) storm(ctx context.Context) error {
	if _, err := r.archiver.ScrapeNow(ctx); err != nil {
		return causeOf(ctx, err)
	}
	if err := r.nodes.register(ctx, registerWithin(r.plan.Nodes), r.journal, r.workload, r.self.Stalls()); err != nil {
		return causeOf(ctx, err)
	}
	if err := r.follow.Ready(ctx); err != nil {
		return causeOf(ctx, err)
	}
	if err := r.target.AwaitServiceAccount(ctx); err != nil {
		return causeOf(ctx, exitcode.EnvironmentError(err))
	}
	if err := r.save(); err != nil {
		return err
	}
	stop := r.loads.start(r.loads.of(""))
	err := r.phases.run(ctx)
	return ending(err, stop())
}

// ending joins the error of the phases with `other`, an error of background loads or hooks. If both are set, ending
// drops errConditionNotMet: an unmet condition is not a failure, so it must not hide one.
func ending(phases, other error) error {
	if other != nil && errors.Is(phases, errConditionNotMet) {
		return other
	}
	return errors.Join(phases, other)
}

// loseWorker records that the run ended early because it lost a worker. Such a run is not judged.
func (r *run) loseWorker(err error) {
	r.info.LostWorkers = append(r.info.LostWorkers, err.Error())
	r.step("the run cannot continue: %v", err)
	r.event(time.Now(), result.EventNote, "worker lost", err.Error())
}

// endBy records the error that ended the phases. If the cluster reached a limit, that is a result of the run. Any other
// error is a failure of the environment.
func (r *run) endBy(err error) {
	why := breachOf(err)
	if why == "" {
		r.fail(hinted(err))
		return
	}
	r.info.Aborted = fmt.Sprintf("%s: %s", why, strings.ReplaceAll(err.Error(), "\n", " "))
	r.step("ended early: %s", r.info.Aborted)
	r.event(time.Now(), result.EventNote, "ended early", r.info.Aborted)
}

func (r *run) fail(err error) {
	r.info.Failure = err.Error()
	if r.target.supervisor != nil && r.target.isLost() {
		r.info.UnexpectedExits = append(r.info.UnexpectedExits, context.Cause(r.target.lost).Error())
	}
	r.display.fail(err.Error())
	r.step("failed: %v", err)
	r.event(time.Now(), result.EventNote, "failed", err.Error())
}

// close closes the archiver, closes or cleans up the target, and writes the measurements. If a step fails, close continues
// with the next step.
func (r *run) close() error {
	defer r.dir.Unlock()
	m := r.measured()
	err := errors.Join(
		r.fleet.Close(),
		r.archiver.close(),
		exitcode.EnvironmentError(r.samples.Close()),
		exitcode.EnvironmentError(r.counted.Close()),
		r.target.close(r.target.isLost(), m.Phases),
	)
	r.info.Ended, r.info.Left = time.Now().UTC(), Left(err)
	switch {
	case err == nil:
	case r.info.Failure == "":
		r.info.Failure = err.Error()
	default: // even after another failure, because the error may name objects left in a user's cluster
		r.info.Failure += "; " + err.Error()
	}
	err = errors.Join(rundir.WriteJSON(r.dir.Path, result.MeasurementsFile, m), r.tracing.save(r.dir.Path), r.tracing.close(), r.timeline.Close())
	digests, digestErr := result.Digest(r.dir.Path)
	r.info.Files = digests
	return errors.Join(err, digestErr, rundir.WriteInfo(r.dir.Path, r.info))
}

func (r *run) measured() result.Measurements {
	m := result.Measurements{Phases: slices.Clone(r.phases.stamps)}
	unmerged := r.loads.addTo(&m)
	r.nodes.addTo(&m)
	seen, transitions := r.workload.Results(), r.follow.Results(time.Now())
	for i := range m.Phases {
		m.Phases[i].Transitions = transitions[m.Phases[i].Name]
		if w, ok := seen[m.Phases[i].Name]; ok {
			m.Phases[i].Workload = &w
		}
	}
	m.Scrapes = r.archiver.Scrapes()
	m.Generator = r.self.Results()
	workers.AddCost(&m.Generator, m.Workers)
	for i := range m.Phases {
		p := &m.Phases[i]
		p.Saturated = slices.Concat(r.self.PhaseSaturation(p.Name), generator.LoadSaturation(*p), r.fleet.Saturation(p.Name))
		m.Generator.Saturated = append(m.Generator.Saturated, p.Saturated...)
	}
	m.Generator.Saturated = append(m.Generator.Saturated, r.fleet.Saturation("")...)
	if unmerged != nil {
		m.Generator.Saturated = append(m.Generator.Saturated, unmerged.Error())
	}
	return m
}

// save writes the measurements so far, so that a killed run can be judged.
func (r *run) save() error {
	return errors.Join(rundir.WriteJSON(r.dir.Path, result.MeasurementsFile, r.measured()), r.tracing.save(r.dir.Path))
}
