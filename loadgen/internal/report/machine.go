package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/machine"
	"github.com/stormglass/stormglass/loadgen/result"
)

// busyPhases returns the phases in which the machine was busy.
func busyPhases(r result.Result) []result.Phase {
	return slices.DeleteFunc(slices.Clone(r.Measurements.Phases), func(p result.Phase) bool { return p.Machine == nil || p.Machine.Busy == "" })
}

// busyMachine returns sentences about the phases in which the machine was busy, or "". The phases that gave the values
// of gates come first, then those in which most processors were in use.
func busyMachine(r result.Result) string {
	busy := busyPhases(r)
	if len(busy) == 0 {
		return ""
	}
	used := func(p result.Phase) float64 { return p.Machine.BusySeconds / max(p.Seconds(), 1e-3) }
	slices.SortStableFunc(busy, func(x, y result.Phase) int {
		return cmp.Or(bools.Int(decides(r, y))-bools.Int(decides(r, x)), cmp.Compare(used(y), used(x)))
	})
	const most, others = 4, "other programs used "
	var why []string
	hint := "Use an idle machine."
	for i, p := range busy[:min(len(busy), most)] {
		text := p.Machine.Busy + " in phase " + p.Name
		if used, programs := strings.CutPrefix(p.Machine.Busy, others); programs {
			hint = "Stop these programs, or use an idle machine."
			if i > 0 && strings.HasPrefix(busy[i-1].Machine.Busy, others) {
				text = strings.Replace(used, " processors", "", 1) + " in " + p.Name
			}
		}
		why = append(why, text)
	}
	if more := len(busy) - most; more > 0 {
		why = append(why, plural(int64(more), "more phase"))
	}
	return "The machine was busy, so latencies may be too high: " + terminal.Clean(strings.Join(why, ", ")) + ". " + hint
}

// noneIdle returns a sentence about the phases without idle processor time, or "". Usually the run itself uses all
// processors, so the sentence does not change the verdict.
func noneIdle(r result.Result) string {
	var phases []string
	for _, p := range r.Measurements.Phases {
		if f, ok := machine.Of(p.Machine, p.Seconds(), r.Run.Host.CPUs, machine.Ours(r.Run)); ok && f.NoneIdle() {
			phases = append(phases, fmt.Sprintf("%s (%.1f of %d in use)", terminal.Clean(p.Name), f.Used+f.Stolen, f.Processors))
		}
	}
	if phases == nil {
		return ""
	}
	return "No processor of this machine was idle in " + listed(phases) + ": latencies include waits for a CPU. Use more processors or less load."
}

// decides reports whether the value of a gate that judges a duration comes from the phase.
func decides(r result.Result, p result.Phase) bool {
	return slices.ContainsFunc(r.Gates, func(g result.Gate) bool { return g.Unit == "seconds" && g.WorstPhase == p.Name })
}

// undiagnosed reports whether a run without a diagnosis has a symptom: a busy machine, or a key metric above its
// recommended maximum.
func undiagnosed(r result.Result) bool {
	return r.Diagnosis == nil && r.Run.ID != "" && (busyMachine(r) != "" || slices.ContainsFunc(r.Key, func(k result.KeyMetric) bool {
		return slices.ContainsFunc(k.Rows, func(row result.KeyRow) bool { return exceeds(k.Name, row, runSeconds(r)/3600) })
	}))
}

// generatorState returns a text which says that the load generator was fast enough for valid measurements. It returns
// "" if this was not recorded, or if the generator was saturated, because the reasons for the verdict then say so.
func generatorState(r result.Result) string {
	g := r.Measurements.Generator
	if !measuredToTheEnd(r.Measurements) || g.SchedulingLag.Count == 0 || len(g.Saturated) > 0 {
		return ""
	}
	return fmt.Sprintf("The load generator kept up (not saturated): in the whole run, the p99 of its timer delay was %s (limit 100 ms), and the maximum %s.",
		seconds(g.SchedulingLag.P99), seconds(g.SchedulingLag.Max))
}
