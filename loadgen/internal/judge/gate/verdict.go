package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// decide returns the gate with its verdict, and the reading (value) that decided it.
func (c Compiled) decide(f finding) (g result.Gate, worst reading) {
	g = result.Gate{
		Name: c.Name, Objective: c.objective.Name, Over: c.Over,
		Bound: c.bound, Op: c.op, Unit: string(c.objective.Unit),
	}
	worst, n := c.worst(f)
	missing := c.missing(f, n)
	breached := n > 0 && !c.unknown(worst) && (worst.failed || !c.holds(worst.value))
	if (f.whole || f.summed && c.op == ">=") && len(missing) > 0 {
		breached = false // the missing values could change the verdict
	}
	partly := c.boundless && !worst.failed && f.lacks() // the worst value may be among the missing ones
	if partly {
		worst.atLeast = true
		breached = breached && c.op == "<="
	}
	switch {
	case breached:
		g.Verdict, g.BrokenIn = result.Fail, c.brokenIn(f)
	case len(missing) > 0 || n == 0:
		g.Verdict, g.Detail = result.NoData, strings.Join(missing, "; ")
		g.Withheld, g.AtLeast = c.withheld(f)
		g.TooShort, g.Allowed = tooShort(f), c.noDataAllowed
		return g, worst
	default:
		g.Verdict = result.Pass
	}
	if !f.summed {
		g.WorstPhase, g.WorstLoad = worst.phase, worst.load
	}
	g.Value, g.AtLeast = &worst.value, worst.atLeast || worst.failed
	g.Detail = explain(f, worst, n)
	if partly {
		g.Detail += "; no data: " + strings.Join(missing, "; ")
	}
	return g, worst
}

// tooShort reports whether values are missing only because the run was too short.
func tooShort(f finding) bool {
	short := false
	for _, r := range f.readings {
		if r.missing != "" && !r.short {
			return false
		}
		short = short || r.short
	}
	return short
}

// withheld returns the worst value that was measured but must not be judged, or nil if no value was withheld. atLeast
// means that the value is a lower bound.
func (c Compiled) withheld(f finding) (value *float64, atLeast bool) {
	for _, r := range f.readings {
		if r.withheld && (value == nil || c.op == "<=" && r.value > *value || c.op == ">=" && r.value < *value) {
			value, atLeast = &r.value, r.atLeast || r.failed
		}
	}
	return value, atLeast
}

func (c Compiled) brokenIn(f finding) []string {
	var broken []string
	for _, r := range f.readings {
		known := !f.summed && slices.Contains(c.Over, r.phase) && !r.nothing && r.missing == "" && !c.unknown(r)
		if known && (r.failed || !c.holds(r.value)) && !slices.Contains(broken, r.phase) {
			broken = append(broken, r.phase)
		}
	}
	return broken
}

func (c Compiled) holds(v float64) bool {
	if c.op == ">=" {
		return v >= c.bound
	}
	return v <= c.bound
}

// unknown reports whether the reading is a lower bound that does not decide the gate.
func (c Compiled) unknown(r reading) bool {
	return r.atLeast && !r.failed && c.holds(r.value) == (c.op == "<=")
}

// worst returns the reading that decides the gate: the worst one or, if summed is set, the sum of all. n is the number
// of readings with a value.
func (c Compiled) worst(f finding) (worst reading, n int) {
	var sum float64
	least := false
	for _, r := range f.readings {
		if r.nothing || r.missing != "" {
			continue
		}
		n++
		sum += r.value
		least = least || r.atLeast
		switch {
		case n == 1, r.failed && !worst.failed:
			worst = r
		case worst.failed:
		case c.op == "<=" && r.value > worst.value, c.op == ">=" && r.value < worst.value:
			worst = r
		}
	}
	if f.summed && n > 1 {
		worst.value, worst.atLeast, worst.of = sum, least, fmt.Sprintf("sum of %d, most in %s", n, worst.of)
	}
	return worst, n
}

// missing returns the reasons why the gate lacks data, without duplicates. n is the number of readings with a value.
func (c Compiled) missing(f finding, n int) []string {
	var why []string
	add := func(s string) {
		if !slices.Contains(why, s) {
			why = append(why, s)
		}
	}
	alike := map[string]int{} // indexes in why of the reasons that several phases share
	empty := map[string]bool{}
	for _, r := range f.readings {
		switch {
		case r.missing != "" && r.alike:
			if at, said := alike[r.missing]; said {
				why[at] += ", " + r.phase
				break
			}
			alike[r.missing] = len(why)
			why = append(why, r.missing+" in "+r.phase)
		case r.missing != "":
			add(r.missing)
		case !r.nothing && c.unknown(r): // the true value of a lower bound may be worse than the worst value
			add(fmt.Sprintf("%s: the true value is %s or more, so it is not known whether it meets the bound (%s)",
				r.of, show(c.objective.Unit, r.value), r.detail))
		}
		if r.phase != "" {
			if _, known := empty[r.phase]; !known {
				empty[r.phase] = true
			}
			empty[r.phase] = empty[r.phase] && r.nothing
		}
	}
	if c.strict && !f.whole && len(empty) > 0 {
		for _, name := range c.Over {
			if e, known := empty[name]; e || !known && !c.objective.Spans {
				add(c.nothing() + " in " + name)
			}
		}
	}
	if n == 0 && len(why) == 0 {
		add(c.nothing() + " in " + strings.Join(c.Over, ", "))
	}
	return why
}

func (c Compiled) nothing() string {
	if c.objective.Name == "expr" {
		return "the expression returns no number (no series matches, a comparison removed all series, or 0 is divided by 0)"
	}
	return "nothing was measured"
}

func explain(f finding, worst reading, n int) string {
	detail := worst.of
	if n > 1 && !f.summed {
		detail = fmt.Sprintf("worst of %d values: %s", n, detail)
	}
	if worst.detail != "" {
		detail += ": " + worst.detail
	}
	return detail
}

// show formats a value with its unit, with three digits.
func show(u scenario.Unit, v float64) string {
	switch {
	case u == scenario.Seconds && v != 0 && math.Abs(v) < resolution:
		return "under 1 µs"
	case u == scenario.Seconds && math.Abs(v) >= 100 && !math.IsInf(v, 0):
		return time.Duration(v * float64(time.Second)).Round(100 * time.Millisecond).String()
	case u == scenario.Seconds && v != 0 && math.Abs(v) < 1:
		return three(v*1000) + " ms"
	case u == scenario.Seconds:
		return three(v) + " s"
	case u == scenario.Ratio:
		return three(v*100) + "%"
	case u == scenario.Size:
		return three(v/1e6) + " MB"
	case u == scenario.PerHour:
		return three(v) + "/h"
	case u == scenario.PerSec:
		return three(v) + "/s"
	}
	return three(v)
}

// resolution is the smallest duration, in seconds, that the histograms distinguish from 0 (latency.Lowest).
const resolution = 1e-6

func three(v float64) string { return digits.Format(v, 3) }

// reason describes a gate that did not pass, in one line.
func reason(g result.Gate) string {
	u := scenario.Unit(g.Unit)
	if g.Verdict == result.NoData {
		return fmt.Sprintf("%s: no data: %s", g.Name, g.Detail)
	}
	if g.Objective == "alert" { // the detail suffices, and the gate's name may be the alert's name
		return fmt.Sprintf("%s: %s", g.Name, strings.TrimPrefix(g.Detail, g.Name+": "))
	}
	if (g.Op == "<=") == (*g.Value <= g.Bound) {
		return fmt.Sprintf("%s: %s", g.Name, g.Detail) // the gate failed for a reason other than its bound
	}
	return fmt.Sprintf("%s: %s is %s %s", g.Name, show(u, *g.Value), side(g.Op), show(u, g.Bound))
}

func side(op string) string {
	if op == ">=" {
		return "under"
	}
	return "over"
}
