package loadgen

import (
	"context"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/workers/job"
)

type (
	// RunManifests are the objects for a run inside the cluster that it loads.
	RunManifests = job.Coordinator
	// Rules are RBAC rules by namespace.
	Rules = cluster.Rules
)

// InCluster, in place of a kubeconfig, means the service account of the pod in which this program runs.
const InCluster = cluster.InCluster

// CheckInCluster performs the checks of Run that do not depend on this machine, for a run inside the cluster that it
// loads. It returns the rules that the run needs there, without the rules for workers, and notes on what it will lack. If
// Options names a cluster, CheckInCluster reads its resources.
func CheckInCluster(ctx context.Context, o Options) (rules Rules, notes []string, err error) {
	return run.InCluster(ctx, o.internal())
}
