package loadgen

import (
	"context"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/workers/job"
)

type (
	// RunManifests are the objects of a run from inside the cluster that it loads.
	RunManifests = job.Coordinator
	// Rules are RBAC rules by namespace.
	Rules = cluster.Rules
)

// InCluster in the place of a kubeconfig is the service account of the pod that this program runs in.
const InCluster = cluster.InCluster

// CheckInCluster makes the checks of Run for a run from inside the cluster that it loads. It returns the rules that the run needs
// there, without those of workers, and notes on what it will lack. A cluster that Options names is asked for its resources.
func CheckInCluster(ctx context.Context, o Options) (rules Rules, notes []string, err error) {
	return run.InCluster(ctx, o.internal())
}
