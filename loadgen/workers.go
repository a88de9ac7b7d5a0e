package loadgen

import (
	"context"

	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
	"github.com/stormglass/stormglass/loadgen/internal/workers/job"
)

type (
	// Workers configures the generators that share the loads and nodes of a run, and how they are started.
	Workers = workers.Options
	// WorkerStarter starts the workers of a run.
	WorkerStarter = workers.Starter
	// LocalWorkers starts workers as processes of this machine.
	LocalWorkers = workers.Local
	// JobWorkers starts workers as pods of a Job in a cluster.
	JobWorkers = job.Starter
	// JobOptions configure workers that run in a cluster.
	JobOptions = job.Options
	// WorkerManifests are the objects that the user must create for workers.
	WorkerManifests = job.Manifests
	// Worker is one of several generators of a run.
	Worker = workers.Worker
)

// DefaultWorkerResources are the default resources of each worker of a Job.
const DefaultWorkerResources = job.DefaultResources

// Work performs a worker's share of a run until the run ends.
func Work(ctx context.Context, w Worker) error {
	w.Build = run.Build()
	return w.Work(ctx)
}
