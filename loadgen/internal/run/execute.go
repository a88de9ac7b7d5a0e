package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/loadgen/internal/audit"
	"github.com/stormglass/stormglass/loadgen/internal/generator"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// execute runs what the scenario says and winds everything up in reverse
// order, whatever happens. What went wrong is noted in r.info. watched is parent,
// until what the run is aimed at is lost.
func (r *run) execute(parent, watched context.Context) {
	ctx, cancel := context.WithCancelCause(watched)
	defer cancel(nil)
	var helpers sync.WaitGroup
	background, stopHelpers := r.patient()
	works := map[string]func(context.Context) error{
		"recorder": r.recorder.Run, "tracker": r.workload.Run, "self meter": r.self.Run, "progress": r.showLive, "pulse": r.samples.Run,
	}
	plane := follower{run: r, told: map[string]bool{}}
	if r.supervisor != nil {
		works["follower of the plane"] = plane.follow
	}
	for name, f := range works {
		helpers.Go(func() {
			if err := f(background); err != nil && background.Err() == nil {
				cancel(exitcode.Environmentf("%s: %w", name, err))
			}
		})
	}
	err := r.save()
	if err == nil {
		err = r.storm(ctx)
	}
	switch {
	case parent.Err() != nil:
		r.info.Interrupted = true
		r.event(time.Now(), result.EventNote, "interrupted", "")
	case err != nil && !errors.Is(err, errConditionNotMet):
		r.fail(r.firstCause(parent, err))
	}
	windUp, cancelWindUp := r.windUp(windUpTimeout)
	defer cancelWindUp()
	r.loads.stopAll()
	r.loads.finish(ctx, r.step)
	if r.fleet != nil {
		r.fleet.Stop(windUp)
	}
	stopHelpers()
	helpers.Wait()
	if r.supervisor != nil {
		plane.last(windUp)
		r.info.MissedFaults = append(r.info.MissedFaults, plane.lost...)
	}
	r.m = r.measured()
}

// fail notes what has ended the run.
func (r *run) fail(err error) {
	r.info.Failure = err.Error()
	if r.plane != nil && r.isLost() {
		r.info.UnexpectedExits = append(r.info.UnexpectedExits, r.loss.Error())
	}
	r.step("failed: %v", err)
	r.event(time.Now(), result.EventNote, "failed", err.Error())
}

// storm registers the nodes and runs the phases.
func (r *run) storm(ctx context.Context) error {
	if _, err := r.recorder.ScrapeNow(ctx); err != nil {
		return r.ended(ctx, err)
	}
	if r.fleet != nil {
		if err := r.registerNodes(ctx, registerWithin(r.scenario.Nodes)); err != nil {
			return r.ended(ctx, err)
		}
		if err := r.save(); err != nil {
			return err
		}
	}
	stop := r.loads.start(r.loads.of(""))
	err := r.phases(ctx)
	return ending(err, stop())
}

// ending joins the errors of the phases and the background's loads. Joined with
// a condition that was not met, which is no failure, a load's would pass for it.
func ending(phases, loads error) error {
	if loads != nil && errors.Is(phases, errConditionNotMet) {
		return loads
	}
	return errors.Join(phases, loads)
}

// registerMargin bounds the time until the nodes are Ready, beyond the time that
// their registration is spread over. It is far more than any cluster that works
// needs: a run that waits for ever leaves no report.
const registerMargin = 10 * time.Minute

func registerWithin(n scenario.Nodes) time.Duration {
	return registerMargin + time.Duration(float64(n.Count)/float64(n.RegisterRate)*float64(time.Second))
}

// registerNodes returns when the API server has acknowledged every node as
// Ready and the tracker has seen it.
func (r *run) registerNodes(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the others were not within %s", limit))
	defer cancel()
	count := r.scenario.Nodes.Count
	r.step("registering %d nodes, fidelity %s", count, r.scenario.Nodes.Fidelity)
	r.event(time.Now(), result.EventNote, "register nodes", fmt.Sprint(count))
	stalled := r.self.Stalls().Total(time.Now())
	defer func() { r.nodesStalled = r.self.Stalls().Total(time.Now()) - stalled }()
	if err := r.fleet.Start(ctx); err != nil {
		return exitcode.Environmentf("%w", err)
	}
	if err := r.workload.Wait(ctx, func() bool { return r.workload.NodesReady(r.fleet.Names()) }); err != nil {
		return exitcode.Environmentf("not all of %d nodes were seen Ready: %w", count, r.ended(ctx, err))
	}
	r.event(time.Now(), result.EventNote, "nodes ready", fmt.Sprint(count))
	r.step("%d nodes Ready", count)
	return nil
}

// measured returns the generator's measurements so far.
func (r *run) measured() result.Measurements {
	m := r.m
	m.Phases = slices.Clone(r.m.Phases) // which are the stamps alone
	r.loads.addTo(&m)
	if r.fleet != nil {
		nodes := r.fleet.Results()
		nodes.ReadyStalledSeconds = r.nodesStalled.Seconds()
		m.Nodes = &nodes
	}
	seen := r.workload.Results()
	for i := range m.Phases {
		if w, ok := seen[m.Phases[i].Name]; ok {
			m.Phases[i].Workload = &w
		}
	}
	m.Scrapes = r.recorder.Scrapes()
	if r.self == nil {
		return m
	}
	m.Generator = r.self.Results()
	for i := range m.Phases {
		p := &m.Phases[i]
		p.Saturated = append(r.self.PhaseSaturation(p.Name), generator.LoadSaturation(*p)...)
		m.Generator.Saturated = append(m.Generator.Saturated, p.Saturated...)
	}
	return m
}

// save writes what the generator has seen so far, for the report of a run that is
// killed later on.
func (r *run) save() error { return rundir.WriteJSON(r.dir, result.MeasurementsFile, r.measured()) }

// finish stops the target, writes the raw results and closes the archive. It
// does all of it even when a part fails.
func (r *run) finish() error {
	ctx, cancel := r.windUp(windUpTimeout)
	defer cancel()
	err := r.closeRecorder()
	if r.samples != nil {
		if e := r.samples.Close(); e != nil {
			err = errors.Join(err, exitcode.Environmentf("%w", e))
		}
	}
	if r.plane != nil {
		r.step("stopping the control plane")
		err = errors.Join(err, r.stopPlane(), r.summariseAudit(ctx), r.tidyPlane())
	} else {
		err = errors.Join(err, r.cleanCluster())
	}
	r.info.Ended = time.Now().UTC()
	switch {
	case err == nil:
	case r.info.Failure == "":
		r.info.Failure = err.Error()
	default: // what is left in a user's cluster is told whatever else went wrong
		r.info.Failure += "; " + err.Error()
	}
	err = errors.Join(rundir.WriteJSON(r.dir, result.MeasurementsFile, r.m), r.timeline.Close())
	digests, digestErr := result.Digest(r.dir)
	r.info.Files = digests
	return errors.Join(err, digestErr, rundir.WriteInfo(r.dir, r.info))
}

// stopPlane stops the bundled plane and its processes: in order, or at once when
// it is lost, which has been told, or the user will not wait.
func (r *run) stopPlane() error {
	ctx, cancel := r.windUp(windUpTimeout)
	defer cancel()
	select {
	case <-r.plane.Done(): // told already
		return nil
	default:
	}
	if r.isLost() {
		cancel()
	}
	if err := r.plane.Stop(ctx); !r.isLost() && !r.hurried() {
		return err
	}
	return nil
}

// summariseAudit keeps what the audit log of a plane that has stopped says of
// the load's requests, if there is one.
func (r *run) summariseAudit(ctx context.Context) error {
	if !r.scenario.ControlPlane.Audited() {
		return nil
	}
	log := filepath.Join(r.dir, planeDir, control.AuditLog)
	audit, err := audit.ReadLog(ctx, log, control.LoadUser, r.m.Phases)
	if err != nil {
		return exitcode.Environmentf("%w", err)
	}
	if err := rundir.WriteJSON(r.dir, result.AuditFile, audit); err != nil {
		return exitcode.Environmentf("%w", err)
	}
	return os.RemoveAll(filepath.Dir(log)) // up to 4 GB, no longer needed
}

// cleanCluster removes from a user's cluster what the run made there. What is
// left is reported, with the command that removes it.
func (r *run) cleanCluster() error {
	r.step("removing what the run made from the cluster")
	ctx, cancel := r.windUp(windUpTimeout)
	defer cancel()
	err := r.target.Cleanup(ctx, func(line string) { r.step("%s", line) })
	if err == nil {
		return nil
	}
	if r.hurried() {
		err = fmt.Errorf("the clean-up was ended by a second signal: %w", err)
	}
	r.info.Left = fmt.Sprintf("not all that run %s made in cluster %s was removed: %s (`%s` removes it)",
		r.info.ID, r.target.Cluster.Name, strings.ReplaceAll(err.Error(), "\n", "; "), r.cleanupCommand())
	return exitcode.EnvironmentError(leftError(r.info.Left))
}

// cleanupCommand removes what the run made in a user's cluster.
func (r *run) cleanupCommand() string {
	command := "loadgen cleanup --kubeconfig " + shell.Quote(r.Kubeconfig)
	if r.Context != "" {
		command += " --context " + shell.Quote(r.Context)
	}
	return command + " --run " + r.info.ID
}

// discard undoes prepare or connect, which failed for a cause: what was started is
// stopped, what was made is removed, the directory with it.
func (r *run) discard(cause error) error {
	var errs []error
	errs = append(errs, r.closeRecorder())
	if r.samples != nil {
		errs = append(errs, r.samples.Close())
	}
	if r.timeline != nil {
		errs = append(errs, r.timeline.Close())
	}
	switch {
	case r.plane != nil:
		if err := r.stopPlane(); !errors.Is(cause, err) { // else it is told already
			errs = append(errs, err)
		}
	case r.touched:
		errs = append(errs, r.cleanCluster())
	}
	switch {
	case r.dir == "":
	case r.plane == nil && planeLeftLogs(r.dir):
		errs = append(errs, removeButLogs(r.dir))
	default:
		errs = append(errs, rundir.Remove(r.dir, r.made))
	}
	return errors.Join(errs...)
}
