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

// The fidelities of simulated nodes.
const (
	FidelityKubelet = node.Kubelet
	FidelityLean    = node.Lean
	FidelityShared  = node.Shared
)

// Fidelities lists the fidelities of simulated nodes.
func Fidelities() []string { return node.Fidelities() }

// RunLabel is the label of every object that a run creates in a cluster.
const RunLabel = cluster.RunLabel

// Nodes runs only the simulated nodes of a scenario until ctx ends. It does not record or judge metrics.
func Nodes(ctx context.Context, o Options) (result.Nodes, error) { return run.Nodes(ctx, o.internal()) }

// Kubeconfig names a user's cluster and the identity to use there.
type Kubeconfig = cluster.Kubeconfig

// CurrentKubeconfig returns the kubeconfig files that kubectl would use. In a pod, it returns the pod's own
// configuration.
func CurrentKubeconfig() (string, error) { return cluster.CurrentKubeconfig() }

// Reach connects to the cluster of a kubeconfig and returns the name of the cluster. It calls step to report long waits.
func Reach(ctx context.Context, k Kubeconfig, step func(string)) (cfg *rest.Config, name string, err error) {
	return cluster.Reach(ctx, k, step)
}

// Removed counts the objects that Cleanup removed.
type Removed = cluster.Removed

// Cleanup removes the objects that a run left in a cluster, which it finds by label. An empty runID means all runs. It
// retries for five minutes.
func Cleanup(ctx context.Context, cfg *rest.Config, runID string, log func(string)) (Removed, error) {
	return cluster.Cleanup(ctx, cfg, runID, log)
}

// PreviewCleanup finds the objects that Cleanup would remove, and removes nothing. It calls log with the names for each kind.
func PreviewCleanup(ctx context.Context, cfg *rest.Config, runID string, log func(string)) (Removed, error) {
	return cluster.PreviewCleanup(ctx, cfg, runID, log)
}

// Sweep removes files that killed runs left in this machine's temporary directory, and
// returns their paths.
func Sweep() []string { return cluster.Sweep() }

// ObserveOptions are the options of Observe: which plane to observe, and where to serve it.
type ObserveOptions = run.ObserveOptions

// Observe scrapes a control plane and serves its metrics through Prometheus' query API, with the rules of package
// alerts. It returns nil when ctx or the control plane ends.
func Observe(ctx context.Context, o ObserveOptions) error { return run.Observe(ctx, o) }

// ObserverURL returns the URL at which Observe serves the metrics of the control plane in dir.
func ObserverURL(dir string) (string, error) { return run.ObserverURL(dir) }

// ScrapeConfigDir is the name of the directory that WriteScrapeConfig creates. ScrapeConfigFile is the name of the
// Prometheus server's configuration in that directory.
const (
	ScrapeConfigDir  = scrapeconfig.Dir
	ScrapeConfigFile = scrapeconfig.ServerFile
)

// ScrapeConfigOptions are the options of WriteScrapeConfig.
type ScrapeConfigOptions = scrapeconfig.Options

// WriteScrapeConfig writes the configuration of a Prometheus server that scrapes targets. It creates a directory for the
// configuration in base, and returns the path of this directory.
func WriteScrapeConfig(base string, targets []control.ScrapeTarget, o ScrapeConfigOptions) (dir string, err error) {
	return scrapeconfig.Write(base, targets, o)
}

// KubePrometheusStackJobs maps components to the job labels that the Helm chart kube-prometheus-stack gives them.
func KubePrometheusStackJobs() map[string]string { return promimport.KubePrometheusStack() }
