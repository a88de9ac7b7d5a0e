package loadgen

import (
	"context"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/workers/job"
)

type (
	// RunManifests are the Kubernetes objects for a run inside the cluster under test.
	RunManifests = job.Coordinator
	// Rules are RBAC rules by namespace.
	Rules = cluster.Rules
)

// InCluster, in place of the path of a kubeconfig, means the service account of the pod in which this program runs.
const InCluster = cluster.InCluster

// CheckInCluster performs the checks of Run for a run inside the cluster under test, except those that depend on this
// machine. It returns the RBAC rules that the run needs in the cluster, without the rules for workers, and notes about
// features that the run will not have. If Options names a cluster, CheckInCluster reads the resources of the cluster.
func CheckInCluster(ctx context.Context, o Options) (rules Rules, notes []string, err error) {
	return run.InCluster(ctx, o.internal())
}
