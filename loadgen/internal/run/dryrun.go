package run

import (
	"context"
	"errors"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
)

// compiled holds the options of a run, and the plan, gates and abort conditions that compile made from them.
type compiled struct {
	o      Options
	plan   *plan.Plan
	gates  []gate.Compiled
	aborts *aborts
}

// compile compiles the scenario, its gates, and the conditions that end the run early.
func (o Options) compile() (c compiled, err error) {
	c.o, c.plan = o, plan.Of(o.Scenario)
	if err = c.plan.Check(); err == nil {
		c.gates, err = gate.Compile(c.plan)
	}
	if err != nil {
		return c, exitcode.UsageError(err)
	}
	c.aborts, err = o.aborts(c.plan)
	return c, err
}

// checked is like compile, but also checks the options.
func (o Options) checked() (compiled, error) {
	c, err := o.compile()
	if err != nil {
		return c, err
	}
	return c, errors.Join(o.checkTarget(), o.checkLoads(c.plan), workers.Check(o.Workers, c.plan), o.checkCustom(), CheckDescriptors(c.plan, o.Workers.Count > 0), o.checkHooks(c.plan), o.checkLabels(), o.checkRate(c.plan), o.checkFuse(), o.checkTracing())
}

// Check returns the error with which Run would refuse the options before Run starts anything, or nil.
func Check(ctx context.Context, o Options) error {
	if _, err := o.checked(); err != nil {
		return err
	}
	return o.checkReleases(ctx)
}

// DryRun checks the options as Run does, and returns a preview of the objects that the run would create and the
// requests that it would send. It changes nothing on this machine or in a cluster. From a user's cluster it reads the
// version, resources and permissions. The preview has a note for each program of another release that is missing on
// this machine. A missing control plane program is an error only if Options.ControlPlane names it.
func DryRun(ctx context.Context, o Options) (cluster.Preview, error) {
	c, err := o.checked()
	if err != nil {
		return cluster.Preview{}, err
	}
	asked := cluster.PreviewOptions{NoLock: o.Fuse.NoLock, CleanupJob: o.Fuse.CleanupImage != "", AbortOn: c.aborts.texts()}
	if o.Kubeconfig.Files == "" {
		p := cluster.PreviewOf(c.plan, asked)
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
	if err := refuseFaults(c.plan); err != nil {
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
	p, err := cluster.Inspect(ctx, o.Kubeconfig, c.plan, asked, tell)
	return p, exitcode.EnvironmentError(err)
}
