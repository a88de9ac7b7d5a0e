package loadgen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/breakdown"
	"github.com/stormglass/stormglass/loadgen/record"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// errPlaneEnded is the cause by which a run ends when its plane does.
var errPlaneEnded = errors.New("the control plane ended while the run went on")

// execute runs what the scenario says and winds everything up in reverse
// order, whatever happens. What went wrong is noted in r.info.
func (r *run) execute(parent context.Context) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	var helpers sync.WaitGroup
	background, stopHelpers := context.WithCancel(context.WithoutCancel(parent))
	works := map[string]func(context.Context) error{
		"recorder": r.recorder.Run, "tracker": r.workload.Run, "self meter": r.self.Run, "progress": r.showLive, "pulse": r.pulse.Run,
	}
	plane := follower{run: r, told: map[string]bool{}}
	if r.supervisor != nil {
		works["follower of the plane"] = plane.follow
	}
	for name, f := range works {
		helpers.Go(func() {
			if err := f(background); err != nil && background.Err() == nil {
				cancel(environmentf("%s: %w", name, err))
			}
		})
	}
	if r.plane != nil {
		helpers.Go(func() {
			select {
			case <-planeDone(r.plane):
				err := planeEnded(r.plane)
				r.info.UnexpectedExits = append(r.info.UnexpectedExits, err.Error())
				cancel(environmentf("%w: %w", errPlaneEnded, err))
			case <-background.Done():
			}
		})
	}

	err := r.storm(ctx)
	switch {
	case parent.Err() != nil:
		r.info.Interrupted = true
		r.step("interrupted: winding up; the report follows")
		r.event(time.Now(), "note", "interrupted", "")
	case err != nil && !errors.Is(err, errConditionNotMet):
		r.info.Failure = err.Error()
		r.step("failed: %v", err)
		r.event(time.Now(), "note", "failed", err.Error())
	}
	r.loads.stopAll()
	r.finishHistories(ctx)
	if r.fleet != nil {
		r.fleet.Stop(context.WithoutCancel(parent))
		nodes := r.fleet.Results()
		nodes.ReadyStalledSeconds = r.nodesStalled.Seconds()
		r.m.Nodes = &nodes
	}
	stopHelpers()
	helpers.Wait()
	if r.supervisor != nil {
		plane.last(context.WithoutCancel(parent))
		r.info.MissedFaults = append(r.info.MissedFaults, plane.lost...)
	}
	r.measure()
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
	}
	stop := r.loads.start(r.loads.of(""))
	err := r.phases(ctx)
	return ending(err, stop())
}

// ending is what the phases and the background's loads have ended with. Joined with
// a condition that was not met, which is no failure, a load's would pass for it.
func ending(phases, loads error) error {
	if loads != nil && errors.Is(phases, errConditionNotMet) {
		return loads
	}
	return errors.Join(phases, loads)
}

// registerMargin is what the nodes may take to be Ready beyond the time that
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
	r.event(time.Now(), "note", "register nodes", fmt.Sprint(count))
	stalled := r.self.Stalls().Total(time.Now())
	defer func() { r.nodesStalled = r.self.Stalls().Total(time.Now()) - stalled }()
	if err := r.fleet.Start(ctx); err != nil {
		return environmentf("%w", err)
	}
	if err := r.workload.Wait(ctx, func() bool { return r.workload.NodesReady(r.fleet.Names()) }); err != nil {
		return environmentf("not all of %d nodes were seen Ready: %w", count, r.ended(ctx, err))
	}
	r.event(time.Now(), "note", "nodes ready", fmt.Sprint(count))
	r.step("%d nodes Ready", count)
	return nil
}

// measure gathers what the generator saw.
func (r *run) measure() {
	r.loads.fill(r.m.Phases)
	r.m.Histories = r.loads.histories()
	seen := r.workload.Results()
	for i := range r.m.Phases {
		if w, ok := seen[r.m.Phases[i].Name]; ok {
			r.m.Phases[i].Workload = &w
		}
	}
	r.m.Scrapes = r.recorder.Scrapes()
	r.m.Generator = r.self.Results()
	for i := range r.m.Phases {
		p := &r.m.Phases[i]
		p.Saturated = append(r.self.PhaseSaturation(p.Name), record.LoadSaturation(*p)...)
		r.m.Generator.Saturated = append(r.m.Generator.Saturated, p.Saturated...)
	}
}

// finish stops the target, writes the raw results and closes the archive. It
// does all of it even when a part fails.
func (r *run) finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), windUpTimeout)
	defer cancel()
	err := r.closeRecorder()
	if r.pulse != nil {
		if e := r.pulse.Close(); e != nil {
			err = errors.Join(err, environmentf("%w", e))
		}
	}
	if r.plane != nil {
		r.step("stopping the control plane")
		select {
		case <-r.plane.Done(): // told already
		default:
			err = errors.Join(err, r.plane.Stop(ctx))
		}
		err = errors.Join(err, r.summariseAudit(ctx), tidyPlane(filepath.Join(r.dir, planeDir)))
	} else {
		err = errors.Join(err, r.cleanCluster(ctx))
	}
	r.info.Ended = time.Now().UTC()
	switch {
	case err == nil:
	case r.info.Failure == "":
		r.info.Failure = err.Error()
	default: // what is left in a user's cluster is told whatever else went wrong
		r.info.Failure += "; " + err.Error()
	}
	err = errors.Join(writeJSON(r.dir, result.MeasurementsFile, r.m), r.timeline.Close())
	digests, digestErr := result.Digest(r.dir)
	r.info.Files = digests
	return errors.Join(err, digestErr, writeRun(r.dir, r.info))
}

// summariseAudit keeps what the audit log of a plane that has stopped says of
// the load's requests, if there is one.
func (r *run) summariseAudit(ctx context.Context) error {
	if !r.scenario.ControlPlane.Audited() {
		return nil
	}
	log := filepath.Join(r.dir, planeDir, control.AuditLog)
	audit, err := breakdown.ReadLog(ctx, log, control.LoadUser, r.m.Phases)
	if err != nil {
		return environmentf("%w", err)
	}
	if err := audit.Save(r.dir); err != nil {
		return environmentf("%w", err)
	}
	return os.RemoveAll(filepath.Dir(log)) // up to 4 GB that nobody reads again
}

// cleanCluster removes from a user's cluster what the run made there.
func (r *run) cleanCluster(ctx context.Context) error {
	r.step("removing what the run made from the cluster")
	if err := r.target.Cleanup(ctx); err != nil {
		return environmentf("%w (`loadgen cleanup --kubeconfig %s --run %s` tries again)", err, r.Kubeconfig, r.info.ID)
	}
	return nil
}

// discard undoes prepare, which failed for a cause: what was started is
// stopped, what was made is removed, the directory with it.
func (r *run) discard(cause error) error {
	var errs []error
	errs = append(errs, r.closeRecorder())
	if r.pulse != nil {
		errs = append(errs, r.pulse.Close())
	}
	if r.timeline != nil {
		errs = append(errs, r.timeline.Close())
	}
	switch {
	case r.plane != nil:
		if err := r.plane.Stop(context.Background()); !errors.Is(cause, err) { // else it is told already
			errs = append(errs, err)
		}
	case r.touched:
		ctx, cancel := context.WithTimeout(context.Background(), windUpTimeout)
		defer cancel()
		errs = append(errs, r.cleanCluster(ctx))
	}
	if r.dir != "" {
		errs = append(errs, removeRunDir(r.dir, r.made))
	}
	return errors.Join(errs...)
}
