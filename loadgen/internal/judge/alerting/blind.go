package alerting

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/internal/metricnames"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Visibility reports whether the recorded data could make an alert fire.
type Visibility struct {
	// Blind says why it could not have fired whatever had happened; empty: it could.
	Blind string
	// Unborn lists metrics that it reads and that had no series in the whole run,
	// as a counter has none before its first event.
	Unborn []string
	// Instances whose metrics it reads, sorted; not those of which it reads up
	// alone, whose lost scrapes are what it looks for.
	Instances []string
}

// Known are the metrics that the rules of package alerts read, by the names of their series. That a
// component has them is tested against its source, so that one without a series
// had nothing to count. Not those that the recorder was told to drop.
func Known(drop []string) func(metric string) bool {
	known := map[string]bool{}
	for _, f := range metricnames.For(metricnames.Rules) {
		if slices.Contains(drop, f.Name) {
			continue
		}
		known[f.Name] = true
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			known[f.Name+suffix] = known[f.Name+suffix] || f.Type == "histogram"
		}
	}
	return func(metric string) bool { return known[metric] }
}

// Look returns what the alerts of a name can read in an archive. An error is the
// context's, or one of reading.
func (s Ruleset) Look(ctx context.Context, a *archive.Archive, alert string, known func(metric string) bool) (Visibility, error) {
	var visible Visibility
	first, last, err := a.Bounds(ctx)
	if err != nil {
		return Visibility{Blind: err.Error()}, ctx.Err()
	}
	seen := archived{ctx: ctx, a: a, first: first, last: last}
	for _, selector := range s.Reads(alert) {
		metric, targets := MetricOf(selector), targetMatchers(selector)
		if visible.Blind = seen.whyNoSeriesFits(selector); visible.Blind != "" {
			break
		}
		if metric == "" || metric == "up" {
			continue
		}
		having := seen.instances(archive.Equal(model.MetricNameLabel, metric))
		switch {
		case len(having) > 0:
		case known(metric) && len(targets) > 0:
			if !slices.Contains(visible.Unborn, metric) {
				visible.Unborn = append(visible.Unborn, metric)
			}
		default:
			visible.Blind = fmt.Sprintf("%s was not recorded: no target exposes it, or record.drop names it", metric)
		}
		if visible.Blind != "" {
			break
		}
		if len(targets) > 0 {
			having = seen.targets(targets)
		}
		visible.Instances = append(visible.Instances, having...)
	}
	slices.Sort(visible.Instances)
	visible.Instances = slices.Compact(visible.Instances)
	return visible, seen.err
}
