package observe

import (
	"runtime/debug"
	"testing"
)

// TestPrometheusVersion: Grafana gets the version of the linked Prometheus.
func TestPrometheusVersion(t *testing.T) {
	for module, want := range map[string]string{"v0.315.0": "3.15.0", "v0.300.1": "3.0.1", "v0.55.0": "3.0.0", "": "3.0.0"} {
		if got := prometheusVersion([]*debug.Module{{Path: "a"}, {Path: "github.com/prometheus/prometheus", Version: module}}); got != want {
			t.Errorf("%s is %s, want %s", module, got, want)
		}
	}
}
