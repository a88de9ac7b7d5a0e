package loadgen

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/record/promimport"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/scrapeconfig"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Fidelities of simulated nodes.
const (
	FidelityKubelet = node.Kubelet
	FidelityLean    = node.Lean
	FidelityShared  = node.Shared
)

// Fidelities lists those of simulated nodes.
func Fidelities() []string { return node.Fidelities() }

// RunLabel is on everything that a run makes in a cluster.
const RunLabel = cluster.RunLabel

// Nodes runs the simulated nodes of a scenario alone until ctx ends. Nothing is
// recorded and nothing judged.
func Nodes(ctx context.Context, o Options) (result.Nodes, error) { return run.Nodes(ctx, o.internal()) }

// Kubeconfig names a user's cluster, and the identity to use there.
type Kubeconfig = cluster.Kubeconfig

// CurrentKubeconfig returns the files that kubectl would use here, or the pod's own
// configuration.
func CurrentKubeconfig() (string, error) { return cluster.CurrentKubeconfig() }

// Reach connects to the cluster of a kubeconfig and returns its name. What it waits for
// for long is told to step.
func Reach(ctx context.Context, k Kubeconfig, step func(string)) (cfg *rest.Config, name string, err error) {
	return cluster.Reach(ctx, k, step)
}

// Removed counts what Cleanup removed.
type Removed = cluster.Removed

// Cleanup removes what runs left in a cluster, by label; of the run of this id, or of
// every run where it is empty. It tries again for five minutes.
func Cleanup(ctx context.Context, cfg *rest.Config, runID string, log func(string)) (Removed, error) {
	return cluster.Cleanup(ctx, cfg, runID, log)
}

// Sweep removes what killed runs left in this machine's temporary directory, and
// returns the paths.
func Sweep() []string { return cluster.Sweep() }

// ObserveOptions says which plane to observe, and where.
type ObserveOptions = run.ObserveOptions

// Observe scrapes a plane and serves its metrics by Prometheus' query API, with the
// rules of package alerts, until ctx ends or the plane does. Neither is an error.
func Observe(ctx context.Context, o ObserveOptions) error { return run.Observe(ctx, o) }

// ObserverURL is where the plane in dir is observed, by Observe.
func ObserverURL(dir string) (string, error) { return run.ObserverURL(dir) }

// ScrapeConfigDir is the directory that WriteScrapeConfig makes, and
// ScrapeConfigFile the configuration for a Prometheus server in it.
const (
	ScrapeConfigDir  = scrapeconfig.Dir
	ScrapeConfigFile = scrapeconfig.ServerFile
)

// ScrapeConfigOptions of WriteScrapeConfig.
type ScrapeConfigOptions = scrapeconfig.Options

// WriteScrapeConfig writes the configuration of a Prometheus that scrapes targets
// into base, and returns its directory.
func WriteScrapeConfig(base string, targets []control.ScrapeTarget, o ScrapeConfigOptions) (dir string, err error) {
	return scrapeconfig.Write(base, targets, o)
}

// KubePrometheusStackJobs maps components to the label job that the Helm chart
// kube-prometheus-stack gives them.
func KubePrometheusStackJobs() map[string]string { return promimport.KubePrometheusStack() }
