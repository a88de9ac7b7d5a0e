package breakdown

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The metrics from which the time of the scheduler is computed.
const (
	famAttempts = "scheduler_schedule_attempts_total"
	famPoint    = "scheduler_framework_extension_point_duration_seconds"
	famPlugin   = "scheduler_plugin_execution_duration_seconds"
	famExecuted = "scheduler_plugin_evaluation_total"
)

// signPoint is the extension point that computes signatures of pods. The scheduler may drop measurements of this
// extension point, as it does for plugins.
const signPoint = "Sign"

// lastPointBucket is the highest finite bucket bound of famPoint, in seconds. Prometheus returns this bound for all
// quantiles above it.
const lastPointBucket = 0.2048

// Scheduler splits the time of the scheduler by extension point and plugin, for each phase with scheduling attempts.
// If the counters of a phase cannot be compared, Missing holds the reason. Scheduler fails only if ctx ends.
func Scheduler(ctx context.Context, rec *rundir.Recorded) ([]result.Scheduling, error) {
	if rec.Archive == nil {
		return nil, nil
	}
	outages, _ := timeline.Of(rec.Timeline).Outages()
	var all []result.Scheduling
	for _, p := range rec.Measurements.Phases {
		s, err := splitScheduler(ctx, rec.Archive, p, outages)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			s = result.Scheduling{Missing: err.Error()}
		}
		if s.Attempts > 0 || s.Missing != "" {
			s.Phase = p.Name
			all = append(all, s)
		}
	}
	return all, nil
}

func splitScheduler(ctx context.Context, a *archive.Archive, p result.Phase, outages timeline.Outages) (s result.Scheduling, err error) {
	recorded, err := gained(ctx, a, control.KindScheduler, p, famAttempts)
	if err != nil || len(recorded) == 0 {
		return s, err
	}
	if s.Missing, err = unfit(ctx, a, control.KindScheduler, p, outages); err != nil || s.Missing != "" {
		return s, err
	}
	for _, c := range recorded {
		s.Attempts += int64(math.Round(c.gain))
	}
	points, err := histograms(ctx, a, control.KindScheduler, p, famPoint)
	if err != nil {
		return s, err
	}
	plugins, err := histograms(ctx, a, control.KindScheduler, p, famPlugin)
	if err != nil {
		return s, err
	}
	executed, err := gained(ctx, a, control.KindScheduler, p, famExecuted)
	if err != nil {
		return s, err
	}
	slowest, err := pointP99(ctx, a, p)
	s.Points, s.Plugins = extensionPoints(points, slowest), pluginTimes(plugins, points, executed)
	return s, err
}

func extensionPoints(all []series, p99 map[string]float64) []result.ExtensionPoint {
	var out []result.ExtensionPoint
	for name, t := range sumBy(all, func(l map[string]string) string { return l["extension_point"] }) {
		e := result.ExtensionPoint{Name: name, Count: int64(math.Round(t.count)), Mean: t.mean(), Seconds: t.sum}
		if v, ok := p99[name]; ok {
			e.P99 = &v
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b result.ExtensionPoint) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// pluginTimes estimates the time of each plugin: the mean of its measurements times the number of its executions. It
// cannot add up the measurements, because the scheduler measures plugins only in a tenth of its cycles
// (pluginMetricsSamplePercent in pkg/scheduler/schedule_one.go), and drops measurements above 1,000 a second
// (pkg/scheduler/metrics/metric_recorder.go).
func pluginTimes(all, points []series, executed map[string]counter) []result.PluginTime {
	type place struct{ plugin, point string }
	at := func(l map[string]string) place { return place{l["plugin"], l["extension_point"]} }
	executions := map[place]float64{}
	for _, c := range executed {
		executions[at(c.labels)] += c.gain
	}
	runs := sumBy(points, func(l map[string]string) string { return l["extension_point"] })
	counted := slices.DeleteFunc(slices.Clone(all), func(s series) bool {
		_, known := executions[at(s.labels)]
		return known && s.labels["status"] == "Skip" // skipped runs do not count as executions
	})
	var out []result.PluginTime
	for where, t := range sumBy(counted, at) {
		n, known := executions[where]
		if !known { // the plugin is executed once in each run of its extension point
			n, known = runs[where.point].count, runs[where.point].count >= t.count && where.point != signPoint
		}
		p := result.PluginTime{Plugin: where.plugin, Point: where.point, Measured: int64(math.Round(t.count)), Mean: t.mean()}
		if known {
			executions := int64(math.Round(n))
			p.Executions, p.Seconds = &executions, t.mean()*n
		} else {
			p.Seconds = t.sum
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b result.PluginTime) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Point, b.Point))
	})
	return out
}

// sumBy adds up the histograms for which `key` returns the same value. It skips histograms without observations.
func sumBy[K comparable](all []series, key func(labels map[string]string) K) map[K]total {
	out := map[K]total{}
	for _, one := range all {
		if one.count > 0 {
			out[key(one.labels)] = out[key(one.labels)].plus(one.total)
		}
	}
	return out
}

// pointP99 returns the 99th percentile of the run time of each extension point, in seconds. It omits quantiles of
// lastPointBucket or more.
func pointP99(ctx context.Context, a *archive.Archive, p result.Phase) (map[string]float64, error) {
	samples, err := a.Instant(ctx, fmt.Sprintf("histogram_quantile(0.99, sum by (le, extension_point) (increase(%s_bucket{job=%q}[%s])))",
		famPoint, control.KindScheduler, archive.Window(p.Start, p.End)), p.End)
	out := map[string]float64{}
	for _, s := range samples {
		if s.V < lastPointBucket { // false for NaN
			out[s.Labels["extension_point"]] = s.V
		}
	}
	return out, err
}
