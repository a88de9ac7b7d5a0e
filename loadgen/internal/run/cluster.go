package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
)

// prepareCluster checks a user's cluster and asks before touching it.
func (r *run) prepareCluster(ctx context.Context) error {
	if err := refuseFaults(r.scenario); err != nil {
		return err
	}
	var err error
	if r.target, err = cluster.FromKubeconfig(ctx, r.Kubeconfig, r.Context, r.info.ID, r.scenario, r.Progress.Step); err != nil {
		return exitcode.Environmentf("%w", err)
	}
	r.target.Waiting = r.waiting
	r.target.NodesAlone = r.nodesAlone
	if r.Targets != "" {
		if err := r.target.AddTargets(r.Targets); err != nil {
			return exitcode.UsageError(err)
		}
	}
	done := r.waiting("Prometheus to say what it scrapes")
	err = r.findPrometheus(ctx)
	done()
	if err != nil {
		return err
	}
	jobs, offer := r.jobs()
	for _, g := range r.gates {
		if lacks := g.Lacks(jobs); len(lacks) > 0 {
			r.target.Notes = append(r.target.Notes, fmt.Sprintf(
				"gate %s will have no data (exit 3): the metrics of %s are not on offer (%s, --without-gate %s leaves it out)",
				g.Name, strings.Join(lacks, ", "), offer, g.Name))
		}
	}
	ok, err := r.Confirm(ctx, r.target.Plan(r.scenario))
	if err != nil {
		return err
	}
	if !ok {
		return exitcode.Usagef("not started: nothing was made in the cluster")
	}
	return nil
}
