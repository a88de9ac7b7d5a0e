package loadgen

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/internal/capacity"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/run"
)

type (
	// Fuse has conditions that end a run early and limits on what the run sends, in addition to the conditions of the scenario.
	Fuse = run.Fuse
	// Preview describes what a run would create and send.
	Preview = cluster.Preview
	// Trace describes a run that still has objects in a cluster.
	Trace = cluster.Trace
	// CleanupManifests configure the Job or CronJob that cleans up inside a cluster.
	CleanupManifests = cluster.CleanupOptions
)

// NoFuse, as a value in Fuse.AbortOn, disables the default conditions that end a run on a user's cluster early.
const NoFuse = run.NoFuse

// DryRun performs the checks of Run and returns what it would create and send. It creates nothing.
func DryRun(ctx context.Context, o Options) (Preview, error) { return run.DryRun(ctx, o.internal()) }

// ABPreview describes what the runs of an A/B comparison would create and send. CapacityPreview describes what the trial
// of a capacity search at the highest load would create and send.
type (
	ABPreview       = ab.Preview
	CapacityPreview = capacity.Preview
)

// EnvironmentFailed marks an error as a failure of the environment. Its exit code is ExitEnvironment.
func EnvironmentFailed(err error) error { return exitcode.EnvironmentError(err) }

// Traces lists the runs that still have objects in a cluster, and whether each run is over.
func Traces(ctx context.Context, cfg *rest.Config) ([]Trace, error) {
	all, err := cluster.Traces(ctx, cfg)
	return all, exitcode.EnvironmentError(err)
}

// AwaitExpired waits until a run is over or has no objects left in the cluster. It returns which of the two happened.
func AwaitExpired(ctx context.Context, cfg *rest.Config, runID string, log func(string)) (why string, err error) {
	return cluster.AwaitExpired(ctx, cfg, runID, log)
}
