package run

import (
	"context"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/generator"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
)

// connect makes what drives the target: namespace and identities, tracker,
// recorder, nodes, loads.
func (r *run) connect(ctx context.Context) error {
	t := r.target
	r.info.Cluster = t.Cluster
	r.info.Versions.Kubernetes, r.info.Versions.Etcd = t.KubernetesVersion, t.EtcdVersion
	if err := rundir.WriteInfo(r.dir, r.info); err != nil {
		return err
	}
	r.touched = true
	if err := t.Setup(ctx); err != nil {
		return exitcode.Environmentf("%w", err)
	}
	var err error
	if err := r.openRecorder(); err != nil {
		return err
	}
	if r.samples, err = samples.Open(r.dir, r.record); err != nil {
		return exitcode.Environmentf("%w", err)
	}
	if r.self, err = generator.NewSelfMeter(r.registry); err != nil {
		return exitcode.Environmentf("%w", err)
	}
	r.workload, err = workload.New(t.Load, workload.Options{
		Namespace: t.Namespace, Labels: t.Labels, NodeSelector: t.NodeSelector(), Tolerations: cluster.Tolerations(),
		Registerer: r.registry, Stalls: r.self.Stalls(), Patience: patience(r.scenario),
	})
	if err != nil {
		return exitcode.Environmentf("%w", err)
	}
	if err := r.makeFleet(); err != nil {
		return err
	}
	defer r.waiting("the objects that loads work on")()
	r.loads, err = newLoads(ctx, r.scenario, load.Target{
		Config: t.Load, Namespace: t.Namespace, Labels: t.Labels, Seed: r.scenario.Seed, Registerer: r.registry,
		Samples: r.samples, Stalls: r.self.Stalls(),
	}, r.dir, r.Hurry)
	if err == nil {
		r.self.Backlog(r.loads.backlog)
	}
	return err
}

// makeFleet makes the simulated nodes, if the scenario wants any.
func (r *run) makeFleet() error {
	if r.scenario.Nodes.Count == 0 {
		return nil
	}
	var err error
	r.fleet, err = node.New(node.Config{
		Spec: r.scenario.Nodes, Identities: r.target.Identities(r.scenario.Nodes), Labels: r.target.Labels,
		Taints: r.target.Taints(), NamePrefix: "sg-" + r.info.ID + "-", Seed: r.scenario.Seed,
		Registerer: r.registry, Samples: r.samples, Log: r.step,
	})
	if err != nil {
		return exitcode.Environmentf("%w", err)
	}
	return nil
}
