package run

import (
	"context"
	"errors"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
)

// DryRun makes the checks of Run and returns what it would make and send. A user's cluster is asked for its version, its
// resources and permissions; nothing is made there or here.
func DryRun(ctx context.Context, o Options) (cluster.Preview, error) {
	if _, err := gate.Compile(o.Scenario); err != nil {
		return cluster.Preview{}, exitcode.UsageError(err)
	}
	ends, err := o.aborts()
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return cluster.Preview{}, err
	}
	asked := cluster.PreviewOptions{NoLock: o.Fuse.NoLock, CleanupJob: o.Fuse.CleanupImage != "", AbortOn: ends.texts()}
	if o.Kubeconfig.Files == "" {
		return cluster.PreviewOf(o.Scenario, asked), nil
	}
	if err := refuseFaults(o.Scenario); err != nil {
		return cluster.Preview{}, err
	}
	tell := func(string) {}
	if o.Progress != nil {
		tell = o.Progress.Step
	}
	p, err := cluster.Inspect(ctx, o.Kubeconfig, o.Scenario, asked, tell)
	return p, exitcode.EnvironmentError(err)
}

// check refuses what is known to be wrong before anything starts.
func (o Options) check() error {
	return errors.Join(o.checkTarget(), o.checkLoads(), workers.Check(o.Workers, o.Scenario), o.checkCustom(), CheckDescriptors(o.Scenario, o.Workers.Count > 0), o.checkHooks(), o.checkRate(), o.checkFuse())
}
