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
	// Fuse says when a run ends early and how much it may send, in addition to the scenario.
	Fuse = run.Fuse
	// Preview describes what a run would create and send.
	Preview = cluster.Preview
	// Trace describes a run that has objects in a cluster.
	Trace = cluster.Trace
	// CleanupManifests configure the Job or CronJob that cleans up inside a cluster.
	CleanupManifests = cluster.CleanupOptions
)

// NoFuse in Fuse.AbortOn disables the default conditions of a run on a user's cluster.
const NoFuse = run.NoFuse

// DryRun performs the checks of Run and returns what it would create and send. It creates nothing.
func DryRun(ctx context.Context, o Options) (Preview, error) { return run.DryRun(ctx, o.internal()) }

// ABPreview describes what the runs of a comparison would create and send. CapacityPreview describes a trial of a search
// at the highest load.
type (
	ABPreview       = ab.Preview
	CapacityPreview = capacity.Preview
)

// EnvironmentFailed marks an error as a failure of the environment, with exit code ExitEnvironment.
func EnvironmentFailed(err error) error { return exitcode.EnvironmentError(err) }

// Traces lists the runs that have objects in a cluster, and whether they are over.
func Traces(ctx context.Context, cfg *rest.Config) ([]Trace, error) {
	all, err := cluster.Traces(ctx, cfg)
	return all, exitcode.EnvironmentError(err)
}

// AwaitExpired waits until a run is over or has no objects left, and returns the reason.
func AwaitExpired(ctx context.Context, cfg *rest.Config, runID string, log func(string)) (why string, err error) {
	return cluster.AwaitExpired(ctx, cfg, runID, log)
}
