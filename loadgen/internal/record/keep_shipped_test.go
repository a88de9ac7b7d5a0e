package record

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/metricnames"
)

// TestShippedQueriesAreRecorded: what the rules and the dashboards read is recorded, or they
// could not be proven on any run.
func TestShippedQueriesAreRecorded(t *testing.T) {
	components := control.Kinds()
	for _, f := range slices.Concat(metricnames.For(metricnames.Rules), metricnames.For(metricnames.Dashboards)) {
		if strings.HasPrefix(f.Name, "stormglass_") || slices.Contains([]string{"up", "scrape_duration_seconds", "ALERTS"}, f.Name) {
			continue // the generator's, of which all is kept; the recorder's own; a rule engine's
		}
		if !slices.ContainsFunc(components, func(job string) bool { return newKeeper(job, nil, nil).keep(f.Name) }) {
			t.Errorf("%s is recorded of no component", f.Name)
		}
	}
}
