package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// maxPoints and maxPlugins are the maximum numbers of extension points and plugins per phase on the page, which shows
// the slowest ones. result.json has all.
const (
	maxPoints  = 8
	maxPlugins = 10
)

// schedulingView returns tables of the scheduler's time by extension point and by plugin.
func schedulingView(_ context.Context, p *page) (any, error) {
	if len(p.result.Scheduling) == 0 {
		return nil, nil
	}
	return []table{pointTable(p.result.Scheduling), pluginTable(p.result.Scheduling)}, nil
}

func pointTable(all []result.Scheduling) table {
	t := table{
		Caption: "By extension point", Merged: 2,
		Head: heads("Phase", ">Attempts", "Extension point", ">Runs", ">Mean per run", ">p99 per run", ">Total time", ">Mean per attempt"),
		Note: "Attempts: attempts to place a pod. Total time: all runs of the extension point together. Mean per attempt: the total time divided by the number of attempts. PostFilter is preemption. PreBind and later extension points run while the scheduler already works on the next pod. A dash instead of a p99 means that it is above the last bucket of the histogram.",
	}
	for _, s := range all {
		phase, attempts := terminal.Clean(s.Phase), chart.Count(s.Attempts)
		if s.Missing != "" {
			t.add(phase, chart.None, "not known: "+terminal.Clean(s.Missing), "", "", "", "", "")
			continue
		}
		for _, e := range s.Points[:min(maxPoints, len(s.Points))] {
			t.add(phase, attempts, terminal.Clean(e.Name), chart.Count(e.Count), seconds(e.Mean), optional(e.P99), seconds(e.Seconds), seconds(e.Seconds/float64(s.Attempts)))
		}
	}
	return t
}

func pluginTable(all []result.Scheduling) table {
	t := table{
		Caption: "By plugin", Merged: 1, Empty: "No scheduling cycle was measured.",
		Head: heads("Phase", "Plugin", "Extension point", ">Executions", ">Of these measured", ">Mean", ">Total time, estimated", ">Of the total"),
		Note: "The scheduler measures plugins only in a tenth of its cycles, at most 1,000 executions a second. Total time: the measured mean multiplied by the number of executions. The estimate is uncertain if few executions were measured. Filter and Score run once for each node, in parallel, so their total time may exceed the duration of the phase.",
	}
	for _, s := range all {
		whole := 0.0
		for _, p := range s.Plugins {
			whole += p.Seconds
		}
		for _, p := range s.Plugins[:min(maxPlugins, len(s.Plugins))] {
			executions := chart.None
			if p.Executions != nil {
				executions = chart.Count(*p.Executions)
			}
			t.add(terminal.Clean(s.Phase), terminal.Clean(p.Plugin), terminal.Clean(p.Point), executions, chart.Count(p.Measured), seconds(p.Mean), seconds(p.Seconds), shareText(p.Seconds, whole))
		}
	}
	return t
}

func seconds(s float64) string { return chart.Format(scenario.Seconds, s) }

// minAttempts is the minimum number of scheduling attempts for a phase to appear in the summary. With fewer attempts,
// the scheduler has measured too few of its cycles.
const minAttempts = 100

// scheduling writes how long an attempt to place a pod takes in the phases with the most attempts.
func (t *terminalWriter) scheduling(r result.Result) {
	all := slices.DeleteFunc(slices.Clone(r.Scheduling), func(s result.Scheduling) bool { return s.Attempts < minAttempts })
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b result.Scheduling) int { return cmp.Compare(b.Attempts, a.Attempts) })
	tab := newTable("SCHEDULER", ">attempts", ">choosing, mean", ">binding, mean", "~slowest plugins, % of the time to choose a node")
	for _, s := range all[:min(len(all), terminalSplits)] {
		choosing, binding := 0.0, 0.0
		for _, e := range s.Points {
			if binds(e.Name) {
				binding += e.Seconds
			} else {
				choosing += e.Seconds
			}
		}
		n := float64(s.Attempts)
		tab.add(terminal.Clean(s.Phase), chart.Count(s.Attempts), seconds(choosing/n), seconds(binding/n), costliest(s.Plugins))
	}
	t.section(tab)
}

// binds reports whether an extension point is part of binding a pod, which waits for the API server.
func binds(point string) bool { return strings.Contains(point, "Bind") }

// costliest names the three plugins that take the most time to choose nodes. It adds up the times of a plugin at all
// extension points.
func costliest(all []result.PluginTime) string {
	byName, whole := map[string]float64{}, 0.0
	for _, p := range all {
		if !binds(p.Point) {
			byName[p.Plugin] += p.Seconds
			whole += p.Seconds
		}
	}
	names := sortedKeys(byName)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(byName[b], byName[a]) })
	var texts []string
	for _, name := range names[:min(3, len(names))] {
		texts = append(texts, fmt.Sprintf("%s %s", terminal.Clean(name), shareText(byName[name], whole)))
	}
	return cmp.Or(strings.Join(texts, ", "), chart.None)
}
