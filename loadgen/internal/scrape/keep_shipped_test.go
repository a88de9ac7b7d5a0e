package scrape

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/metricnames"
)

// TestShippedQueriesAreRecorded: the metrics that rules and dashboards read are
// recorded, because otherwise no run could prove them.
func TestShippedQueriesAreRecorded(t *testing.T) {
	components := control.Kinds()
	for _, f := range slices.Concat(metricnames.For(metricnames.Rules), metricnames.For(metricnames.Dashboards)) {
		if strings.HasPrefix(f.Name, "stormglass_") || slices.Contains([]string{"up", "scrape_duration_seconds", "ALERTS"}, f.Name) {
			continue // metrics of the generator (all are kept), of the recorder and of a rule engine
		}
		if !slices.ContainsFunc(components, func(job string) bool { return newKeeper(job, nil, nil).keep(f.Name) }) {
			t.Errorf("no component's scrape keeps %s", f.Name)
		}
	}
}
