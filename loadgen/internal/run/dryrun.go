package run

import (
	"context"
	"errors"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
)

// plan is a scenario that has passed all checks, with its compiled gates and the options of its run.
type plan struct {
	o      Options
	gates  []gate.Compiled
	aborts *aborts
}

// compile compiles the gates and the conditions that end the run early, and checks the options.
func (o Options) compile() (p plan, err error) {
	p.o = o
	if p.gates, err = gate.Compile(o.Scenario); err != nil {
		return p, exitcode.UsageError(err)
	}
	if p.aborts, err = o.aborts(); err != nil {
		return p, err
	}
	return p, o.check()
}

// Check returns the error with which Run would refuse the options before Run starts anything, or nil.
func Check(ctx context.Context, o Options) error {
	if _, err := o.compile(); err != nil {
		return err
	}
	return o.checkReleases(ctx)
}

// DryRun checks the options as Run does, and returns a preview of the objects that the run would create and the
// requests that it would send. It changes nothing on this machine or in a cluster. From a user's cluster it reads the
// version, resources and permissions. The preview has a note for each program of another release that is missing on
// this machine. A missing control plane program is an error only if Options.ControlPlane names it.
func DryRun(ctx context.Context, o Options) (cluster.Preview, error) {
	compiled, err := o.compile()
	if err != nil {
		return cluster.Preview{}, err
	}
	asked := cluster.PreviewOptions{NoLock: o.Fuse.NoLock, CleanupJob: o.Fuse.CleanupImage != "", AbortOn: compiled.aborts.texts()}
	if o.Kubeconfig.Files == "" {
		p := cluster.PreviewOf(o.Scenario, asked)
		if o.Plane == "" {
			if o.ControlPlane != "" {
				if _, err := controlPlaneProgram(o.ControlPlane); err != nil {
					return p, err
				}
			}
			p.Notes = append(p.Notes, MissingReleases(ctx, o.Scenario, o.ControlPlane)...)
		}
		return p, nil
	}
	if err := refuseFaults(o.Scenario); err != nil {
		return cluster.Preview{}, err
	}
	if o.Targets != "" {
		if _, err := cluster.ReadTargets(o.Targets); err != nil {
			return cluster.Preview{}, exitcode.UsageError(err)
		}
	}
	tell := func(string) {}
	if o.Progress != nil {
		tell = o.Progress.Step
	}
	p, err := cluster.Inspect(ctx, o.Kubeconfig, o.Scenario, asked, tell)
	return p, exitcode.EnvironmentError(err)
}

// check returns all errors in the options that can be found before anything starts.
func (o Options) check() error {
	return errors.Join(o.checkTarget(), o.checkLoads(), workers.Check(o.Workers, o.Scenario), o.checkCustom(), CheckDescriptors(o.Scenario, o.Workers.Count > 0), o.checkHooks(), o.checkLabels(), o.checkRate(), o.checkFuse(), o.checkTracing())
}
