package cli

import (
	"testing"

	"github.com/stormglass/stormglass/alerts/render"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
)

// `run --prometheus` and `alerts render` expect the same names of kube-prometheus-stack.
func TestStackHasOneSetOfNames(t *testing.T) {
	jobs, err := render.Preset(render.DefaultPreset)
	if err != nil {
		t.Fatal(err)
	}
	for component, want := range promimport.KubePrometheusStack() {
		got, renamed := jobs[component]
		if !renamed {
			got = component
		}
		if got != want {
			t.Errorf("%s has the job %q in the rules, but %q in a run", component, got, want)
		}
	}
}
