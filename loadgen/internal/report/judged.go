package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// alertObjective is the objective of gates that name an alert. The value of such a gate is the
// number of times that the alert fired. Reports show it in words.
const alertObjective = "alert"

// word returns the word that all reports show for a verdict. Colours only repeat the word.
func word(v result.Verdict) string { return strings.ToUpper(string(v)) }

// gateWord returns the word that reports show for the verdict of a gate. A gate without data is "TOO SHORT" if the run
// was too short to judge it, and "ALLOWED" if the user allowed its data to be missing.
func gateWord(g result.Gate) string {
	switch {
	case g.Allowed:
		return "ALLOWED"
	case g.TooShort:
		return "TOO SHORT"
	}
	return word(g.Verdict)
}

// gateStyle returns the text style for a gate's verdict: dim if the user allowed the gate's data to be missing.
func gateStyle(g result.Gate) string {
	if g.Allowed {
		return "dim"
	}
	return style(g.Verdict)
}

// runWord returns the word that reports show for the verdict of a run. A failure of the environment has its own word,
// because the cluster did not fail.
func runWord(r result.Result) string {
	if r.Run.Failure != "" {
		return "ENVIRONMENT FAILED"
	}
	return word(r.Verdict)
}

// byUrgency sorts gates by state: failed, no data, run too short, allowed to lack data, passed. Gates with the same
// state keep the order of the scenario.
func byUrgency(gates []result.Gate) []result.Gate {
	rank := func(g result.Gate) int {
		switch {
		case g.Verdict == result.Fail:
			return 0
		case g.Verdict == result.Pass:
			return 4
		case g.Allowed:
			return 3
		case g.TooShort:
			return 2
		}
		return 1
	}
	gates = slices.Clone(gates)
	slices.SortStableFunc(gates, func(a, b result.Gate) int { return cmp.Compare(rank(a), rank(b)) })
	return gates
}

func countGates(gates []result.Gate, v result.Verdict) int {
	n := 0
	for _, g := range gates {
		n += bools.Int(g.Verdict == v)
	}
	return n
}

// headline summarises the gates in one line.
func headline(r result.Result) string {
	failed, nodata := countGates(r.Gates, result.Fail), countGates(r.Gates, result.NoData)
	total := len(r.Gates)
	allowed, short := 0, 0
	for _, g := range r.Gates {
		allowed += bools.Int(g.Allowed)
		short += bools.Int(g.TooShort && !g.Allowed)
	}
	nodata -= allowed
	var parts []string
	switch {
	case total == 0:
		parts = append(parts, "no gates")
	case failed == 0 && nodata == 0 && total == 1 && allowed == 0:
		parts = append(parts, "the only gate passed")
	case failed == 0 && nodata == 0 && allowed == 0:
		parts = append(parts, fmt.Sprintf("all %d gates passed", total))
	case failed == 0 && nodata == 0:
		parts = append(parts, fmt.Sprintf("%d of %d gates passed", total-allowed, total))
	case failed == 0:
		parts = append(parts, fmt.Sprintf("%d of %d gates without data", nodata, total))
	default:
		parts = append(parts, fmt.Sprintf("%d of %d gates failed", failed, total))
		if nodata > 0 {
			parts = append(parts, fmt.Sprintf("%d without data", nodata))
		}
	}
	if short > 0 {
		parts = append(parts, fmt.Sprintf("run too short for %d", short))
	}
	if allowed > 0 {
		parts = append(parts, fmt.Sprintf("no data allowed for %d", allowed))
	}
	switch n := undelivered(r.Measurements.Phases); {
	case n == 1:
		parts = append(parts, "1 load or action below target")
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d loads or actions below target", n))
	}
	if r.Run.Interrupted {
		parts = append(parts, "interrupted")
	}
	if r.Run.Aborted != "" {
		parts = append(parts, "ended early")
	}
	if len(r.Run.LostWorkers) > 0 {
		parts = append(parts, "a worker was lost")
	}
	if len(r.Measurements.Generator.Saturated) > 0 {
		parts = append(parts, "generator saturated")
	}
	if len(r.Run.UnexpectedExits) > 0 {
		parts = append(parts, "a component exited unexpectedly")
	}
	return strings.Join(parts, ", ")
}

// least returns value, a formatted number, with "≥" before it if `only` is set. Set `only` if value is a lower bound.
func least(only bool, value string) string {
	if only {
		return "≥ " + value
	}
	return value
}

// gateValue formats the value of a gate with enough digits to distinguish it from the bound: a value of 1.0004 s is not
// shown as "1 s" if the bound is 1 s.
func gateValue(g result.Gate) string {
	switch {
	case g.Value == nil && g.Withheld != nil: // parentheses mean that the value was measured but not judged
		g.Value, g.Withheld = g.Withheld, nil
		return "(" + gateValue(g) + ")"
	case g.Value == nil:
		return chart.None
	case g.Objective != alertObjective:
	case *g.Value == 0:
		return "did not fire"
	case *g.Value == 1:
		return "fired"
	default:
		return "fired " + chart.Number(*g.Value, 3) + "×"
	}
	u := scenario.Unit(g.Unit)
	bound := chart.Format(u, g.Bound)
	for digits := 3; digits < 9; digits++ {
		if s := chart.FormatDigits(u, *g.Value, digits); s != bound || *g.Value == g.Bound {
			return least(g.AtLeast, s)
		}
	}
	return least(g.AtLeast, chart.FormatDigits(u, *g.Value, 9))
}

func gateBound(g result.Gate) string {
	if g.Objective == alertObjective {
		return map[bool]string{true: "must fire", false: "must not fire"}[g.Op == ">="]
	}
	op := map[string]string{"<=": "≤", ">=": "≥"}[g.Op]
	return cmp.Or(op, terminal.Clean(g.Op)) + " " + chart.Format(scenario.Unit(g.Unit), g.Bound)
}

// margin describes by how much a gate failed or passed: "24% over", "3.1× the bound", "38% to
// spare". It returns "" if the gate has no value.
func margin(g result.Gate) string {
	if g.Value == nil || math.IsNaN(*g.Value) || g.Objective == alertObjective {
		return ""
	}
	v, b, u := *g.Value, g.Bound, scenario.Unit(g.Unit)
	atMost := g.Op != ">="
	inside := v <= b
	if !atMost {
		inside = v >= b
	}
	switch {
	case inside && atMost && g.AtLeast: // the expected event never happened
		return ""
	case v == b && b == 0:
		return ""
	case v == b:
		return "at the bound"
	case b == 0 || v < 0 || b < 0:
		return chart.Format(u, math.Abs(v-b)) + map[bool]string{true: " to spare", false: map[bool]string{true: " over", false: " short"}[atMost]}[inside]
	case inside && atMost:
		return percent(1-v/b) + " to spare"
	case inside:
		return percent(v/b-1) + " to spare"
	case atMost && v/b >= 2:
		return chart.Number(v/b, 2) + "× the bound"
	case atMost:
		return percent(v/b-1) + " over"
	}
	return percent(1-v/b) + " short"
}

// percent formats a positive share in percent, and never rounds it to zero.
func percent(f float64) string {
	if f > 0 && f < 0.001 {
		return "<0.1%"
	}
	return chart.Number(math.Round(f*1000)/10, 2) + "%"
}

// otherReasons returns the reasons for a run's verdict that the table of gates does not show. A reason that quotes the
// log of a component has several lines.
func otherReasons(r result.Result) []string {
	var rest []string
	seen := map[string]bool{}
	for _, reason := range r.Reasons {
		told := slices.ContainsFunc(r.Gates, func(g result.Gate) bool {
			return g.Verdict != result.Pass && (strings.HasPrefix(reason, g.Name+":") || strings.HasPrefix(reason, "gate "+g.Name+":") ||
				strings.HasPrefix(reason, "gate "+g.Name+" "))
		})
		if reason = terminal.CleanLines(reason); !told && !seen[reason] {
			seen[reason] = true
			rest = append(rest, reason)
		}
	}
	return rest
}

// The upstream names of the four key metrics.
const (
	keyFsync      = "etcd_disk_wal_fsync_duration_seconds"
	keyRequests   = "apiserver_request_duration_seconds"
	keyScheduling = "scheduler_scheduling_attempt_duration_seconds"
	keyLeaders    = "etcd_server_leader_changes_seen_total"
)

// guide is the bound that Kubernetes or etcd recommends for a key metric. Reports only show it; gates decide the
// verdict.
type guide struct {
	text  string
	bound float64
}

// guideOf returns the recommended bound for a row of a key metric, or false if the row has none. Examples: WAL fsync
// p99 10 ms (etcd's hardware guide), API calls 1 s (Kubernetes' SLO). WATCH and CONNECT have no bound, because they
// last as long as the client keeps them open.
func guideOf(metric string, row result.KeyRow, hours float64) (guide, bool) {
	switch metric {
	case keyFsync:
		return guide{"≤ 10 ms", 0.010}, true
	case keyRequests:
		switch strings.ToUpper(row.Label) {
		case "WATCH", "CONNECT", "WATCHLIST", "PROXY":
			return guide{"none", math.Inf(1)}, true
		case "LIST", "DELETECOLLECTION":
			return guide{"≤ 30 s", 30}, true
		}
		return guide{"≤ 1 s", 1}, true
	case keyLeaders:
		return guide{"≤ 1/h", max(1, hours)}, true
	}
	return guide{}, false
}

// exceeds reports whether a row of a key metric is above its recommended bound.
func exceeds(metric string, row result.KeyRow, hours float64) bool {
	g, ok := guideOf(metric, row, hours)
	return ok && keyValue(row) != nil && *keyValue(row) > g.bound
}

// keyValue returns the p99 of a row, or the value of the row if it has no p99.
func keyValue(row result.KeyRow) *float64 { return cmp.Or(row.P99, row.Value) }

// runName returns the scenario and, if any, the variant of the run.
func runName(r result.Result) string {
	if r.Run.Variant == "" {
		return terminal.Clean(r.Run.Scenario)
	}
	return terminal.Clean(r.Run.Scenario + ", variant " + r.Run.Variant)
}

// cleaned removes control characters from strings, so that they are safe to show.
func cleaned(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = terminal.Clean(text)
	}
	return all
}

// given removes control characters from texts, and leaves out empty texts.
func given(texts ...string) []string {
	return slices.DeleteFunc(cleaned(texts), func(text string) bool { return text == "" })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
