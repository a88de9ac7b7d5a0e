package loadgen

import (
	"context"

	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/internal/workers/job"
)

type (
	// Workers sets how many generators share the loads and nodes of a run, and how they are started.
	Workers = workers.Options
	// WorkerStarter starts the workers of a run.
	WorkerStarter = workers.Starter
	// LocalWorkers starts workers as processes of this machine.
	LocalWorkers = workers.Local
	// JobWorkers starts workers as pods of a Job in a cluster.
	JobWorkers = job.Starter
	// JobOptions say how workers run in a cluster.
	JobOptions = job.Options
	// WorkerManifests are the objects of workers that the user creates.
	WorkerManifests = job.Manifests
	// Worker is one of several generators of a run.
	Worker = workers.Worker
)

// DefaultWorkerResources are the default resources of each worker of a Job.
const DefaultWorkerResources = job.DefaultResources

// Work does a worker's share of a run until the run has ended.
func Work(ctx context.Context, w Worker) error {
	w.Build = run.Build()
	return w.Work(ctx)
}
