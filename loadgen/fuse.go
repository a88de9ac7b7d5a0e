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
	// Fuse is how a run ends early and how much it may send, beside what the scenario says.
	Fuse = run.Fuse
	// Preview is what a run would make and send.
	Preview = cluster.Preview
	// Trace is what is left of a run in a cluster.
	Trace = cluster.Trace
	// CleanupManifests say what cleans up inside a cluster.
	CleanupManifests = cluster.CleanupOptions
)

// NoFuse among Fuse.AbortOn leaves out the usual conditions of a run on a user's cluster.
const NoFuse = run.NoFuse

// DryRun makes the checks of Run and returns what it would make and send. It makes nothing.
func DryRun(ctx context.Context, o Options) (Preview, error) { return run.DryRun(ctx, o.internal()) }

// ABPreview is what the runs of a comparison would make and send, CapacityPreview what a trial of a search would at the highest load.
type (
	ABPreview       = ab.Preview
	CapacityPreview = capacity.Preview
)

// EnvironmentFailed marks an error as one of the environment: ExitEnvironment.
func EnvironmentFailed(err error) error { return exitcode.EnvironmentError(err) }

// Traces lists the runs that have objects in a cluster, and which of them are over.
func Traces(ctx context.Context, cfg *rest.Config) ([]Trace, error) {
	all, err := cluster.Traces(ctx, cfg)
	return all, exitcode.EnvironmentError(err)
}

// AwaitExpired returns when a run is over, or nothing is left of it, and says why.
func AwaitExpired(ctx context.Context, cfg *rest.Config, runID string, log func(string)) (why string, err error) {
	return cluster.AwaitExpired(ctx, cfg, runID, log)
}
