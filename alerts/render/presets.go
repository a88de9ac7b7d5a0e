package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DefaultPreset is the names of jobs that a Prometheus most often has.
const DefaultPreset = "kube-prometheus-stack"

// presets returns the names of jobs of each installation, by our own names. A job with an
// empty name is not scraped there.
func presets() map[string]map[string]string {
	return map[string]map[string]string{
		// The jobLabel of the chart's ServiceMonitors (templates/exporters). It has none for a
		// cloud's controller manager: your monitor names that job.
		DefaultPreset: {"kube-apiserver": "apiserver", "etcd": "kube-etcd"},
		// The same on a control plane that shows its API servers only (kubeEtcd.enabled=false, ...).
		"kube-prometheus-stack-managed": only("kube-apiserver", "apiserver"),
		// The chart prometheus-community/prometheus scrapes of a control plane its API servers.
		"prometheus": only("kube-apiserver", "kubernetes-apiservers"),
		// The names that ship: of deploy/kubernetes/scrape, of kubernetes-mixin.
		"stormglass": {},
	}
}

// only returns the job names of a Prometheus that scrapes one component and a load generator.
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

// Presets lists the names of presets.
func Presets() []string { return slices.Sorted(maps.Keys(presets())) }

// Preset returns the names of jobs of an installation, for Options. It fails if the preset is
// unknown.
func Preset(name string) (map[string]string, error) {
	jobs, ok := presets()[name]
	if !ok {
		return nil, fmt.Errorf("preset %q is unknown (%s)", name, strings.Join(Presets(), ", "))
	}
	return jobs, nil
}
