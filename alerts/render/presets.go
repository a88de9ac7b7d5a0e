package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DefaultPreset is the preset with the most common job names.
const DefaultPreset = "kube-prometheus-stack"

// presets returns the presets by name. A preset maps the job names of Stormglass to the job names of an installation.
// An empty job name means that the installation does not scrape the job.
func presets() map[string]map[string]string {
	return map[string]map[string]string{
		// The names come from the jobLabel of the chart's ServiceMonitors (templates/exporters). The chart has no
		// ServiceMonitor for a cloud-controller-manager. Users write that ServiceMonitor themselves and choose its job
		// name.
		DefaultPreset: {"kube-apiserver": "apiserver", "etcd": "kube-etcd"},
		// The same chart on a managed control plane, where only the API servers can be scraped (kubeEtcd.enabled=false, ...).
		"kube-prometheus-stack-managed": only("kube-apiserver", "apiserver"),
		// The chart prometheus-community/prometheus scrapes only the API servers of a control plane.
		"prometheus": only("kube-apiserver", "kubernetes-apiservers"),
		// The job names of Stormglass, which deploy/kubernetes/scrape and kubernetes-mixin also use.
		"stormglass": {},
	}
}

// only returns the job names of a Prometheus server that scrapes only the load generator and one component. ours is the
// component's job name in Stormglass, and theirs is its job name in that server.
func only(ours, theirs string) map[string]string {
	jobs := map[string]string{}
	for _, job := range Jobs() {
		if job != Generator {
			jobs[job] = ""
		}
	}
	jobs[ours] = theirs
	return jobs
}

// Presets returns the names of the presets.
func Presets() []string { return slices.Sorted(maps.Keys(presets())) }

// Preset returns the job names of an installation, for Options.Jobs. It fails if the preset is unknown.
func Preset(name string) (map[string]string, error) {
	jobs, ok := presets()[name]
	if !ok {
		return nil, fmt.Errorf("preset %q is unknown (%s)", name, strings.Join(Presets(), ", "))
	}
	return jobs, nil
}
