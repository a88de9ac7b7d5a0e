package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/metricnames"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
)

// unexposed returns the metric that a selector reads, and a hint, if no component exposes that metric. Both are empty
// if a component exposes the metric, or if a component has an older release, whose metrics are unknown.
func unexposed(s *plan.Plan, e metricnames.Exposed, matchers []*labels.Matcher) (hint, metric string) {
	metric = alerting.MetricOf(matchers)
	older := func(component string) bool { return s.ControlPlane.ReleaseOf(component) != control.Newest() }
	if metric == "" || e.Has(metric) || slices.ContainsFunc(s.ControlPlane.Components(), older) {
		return "", ""
	}
	for _, end := range []string{"_bucket", "_sum", "_count", ""} {
		name, ok := strings.CutSuffix(metric, end)
		if near := strictyaml.Suggest(name, e.Names()); ok && near != "" {
			return fmt.Sprintf("did you mean %q?", near+end), metric
		}
	}
	return "the metric has data if a target of --targets, your Prometheus or your collector exposes it", metric
}
