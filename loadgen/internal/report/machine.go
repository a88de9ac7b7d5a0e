package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

// busyMachine returns sentences about the phases in which the machine was busy, or "". The phases that gave the values
// of gates come first, then those in which most processors were in use.
func busyMachine(r result.Result) string {
	const most = 4
	busy := slices.DeleteFunc(slices.Clone(r.Measurements.Phases), func(p result.Phase) bool { return p.Machine == nil || p.Machine.Busy == "" })
	if len(busy) == 0 {
		return ""
	}
	used := func(p result.Phase) float64 { return p.Machine.BusySeconds / max(p.Seconds(), 1e-3) }
	slices.SortStableFunc(busy, func(x, y result.Phase) int {
		return cmp.Or(btoi(decides(r, y))-btoi(decides(r, x)), cmp.Compare(used(y), used(x)))
	})
	const others = "other programs used "
	var why []string
	hint, last := "Use an idle machine.", ""
	for _, p := range busy[:min(len(busy), most)] {
		text := p.Machine.Busy + " in phase " + p.Name
		used, programs := strings.CutPrefix(p.Machine.Busy, others)
		if programs {
			hint = "Stop these programs, or use an idle machine."
			if strings.HasPrefix(last, others) {
				text = strings.TrimSuffix(used, " processors") + " in " + p.Name
			}
		}
		last = p.Machine.Busy
		why = append(why, text)
	}
	if more := len(busy) - most; more > 0 {
		why = append(why, plural(int64(more), "more phase"))
	}
	return "The machine was busy, so latencies may be too high: " + terminal.Clean(strings.Join(why, ", ")) + ". " + hint
}

// decides reports whether the value of a gate that judges a duration comes from the phase. The detail of a gate begins
// with the source of its value, such as "worst of 4 values: update/patch-configmap".
func decides(r result.Result, p result.Phase) bool {
	return slices.ContainsFunc(r.Gates, func(g result.Gate) bool {
		if g.WorstPhase != "" || g.Unit != "seconds" {
			return g.WorstPhase == p.Name
		}
		rest, found := strings.CutPrefix(withoutRank(g.Detail), p.Name)
		return found && (rest == "" || strings.ContainsAny(rest[:1], "/,:"))
	})
}

// undiagnosed reports whether a run without a diagnosis has a symptom: a busy machine, or a key metric above its
// recommended maximum.
func undiagnosed(r result.Result) bool {
	return r.Diagnosis == nil && r.Run.ID != "" && (busyMachine(r) != "" || slices.ContainsFunc(r.Key, func(k result.KeyMetric) bool {
		return slices.ContainsFunc(k.Rows, func(row result.KeyRow) bool { return exceeds(k.Name, row, runSeconds(r)/3600) })
	}))
}

// generatorState says whether the load generator was too slow for valid measurements, or returns "" if that was not
// recorded.
func generatorState(r result.Result) string {
	g := r.Measurements.Generator
	if !measuredToTheEnd(r.Measurements) || g.SchedulingLag.Count == 0 {
		return ""
	}
	if len(g.Saturated) > 0 {
		return "The load generator was saturated, so its measurements may show its own delays instead of those of the cluster."
	}
	return fmt.Sprintf("The load generator kept up (not saturated): in the whole run, its timers fired at most %s late (p99 %s).",
		seconds(g.SchedulingLag.Max), seconds(g.SchedulingLag.P99))
}
