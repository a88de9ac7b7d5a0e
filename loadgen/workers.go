package loadgen

import (
	"context"

	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
)

type (
	// Workers say how many generators divide the loads of a run, and who starts them.
	Workers = workers.Options
	// WorkerStarter starts the workers of a run.
	WorkerStarter = workers.Starter
	// LocalWorkers starts workers as processes of this machine.
	LocalWorkers = workers.Local
	// Worker is one of several generators of a run.
	Worker = workers.Worker
)

// Work does a worker's share of a run until the run has ended.
func Work(ctx context.Context, w Worker) error {
	w.Build = run.Build()
	return w.Work(ctx)
}
