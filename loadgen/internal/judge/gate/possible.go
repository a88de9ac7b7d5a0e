package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// leastLatency is less than anything takes that goes through a socket or to a disk, in
// seconds. A p99 of scraped buckets is longer still: it is interpolated from 0 to
// the edge of the first one.
const leastLatency = 10e-6

// longest is the length of the longest phase there can be, in seconds.
const longest = 24 * 3600

// impossible says why a gate with that bound could not fail, or not pass. op is
// "<=" for max and ">=" for min. Nothing is known of an expr.
func (o Objective) impossible(b *scenario.Bound, op string) (hint, wrong string) {
	if o.Name == "expr" {
		return "", ""
	}
	most, upTo := o.largest(), "at most"
	if op == "<=" {
		upTo = "less than"
	}
	switch {
	case b.Value < 0:
		return "write 0 or more, as " + o.Unit.Example(), fmt.Sprintf("%s is below 0, and %s never is", b, o.Name)
	case b.Value > most && o.Unit == scenario.Ratio && b.Value <= 100 && b.Fits(scenario.Count):
		return fmt.Sprintf("write %g%% or %g", b.Value, b.Value/100), fmt.Sprintf("%s is %g%%, and %s is at most 100%%", b, b.Value*100, o.Name)
	case b.Value > most && o.Unit == scenario.Ratio:
		return upTo + " 100%", fmt.Sprintf("%s is over 100%%, and %s never is", b, o.Name)
	case b.Value > most && !math.IsInf(most, 1):
		return fmt.Sprintf("%s %g", upTo, most), fmt.Sprintf("%s is over %g, and %s never is", b, most, o.Name)
	case o.Unit == scenario.Count && b.Value != math.Trunc(b.Value):
		return fmt.Sprintf("write %g or %g", math.Floor(b.Value), math.Ceil(b.Value)), fmt.Sprintf("%s is no whole number, and %s is a count", b, o.Name)
	case o.Unit == scenario.Seconds && b.Value > longest:
		return "at most 24h, as the longest phase", fmt.Sprintf("%s is longer than any phase", b)
	case op == "<=" && b.Value >= most:
		return "write less, or leave the gate out", fmt.Sprintf("%s is never over %s: the gate cannot fail", o.Name, b)
	case op == ">=" && b.Value <= o.least:
		return "write more, or leave the gate out", fmt.Sprintf("%s is never under %s: the gate cannot fail", o.Name, b)
	case op == "<=" && b.Value < o.least:
		return "write more; to begin with, " + o.Default, fmt.Sprintf("%s is never %s or less: the gate cannot pass", o.Name, b)
	}
	return "", ""
}

// contradictions finds pairs of gates on one value that cannot both pass.
func contradictions(s *scenario.Scenario, all []Compiled) []error {
	var errs []error
	for i, c := range all {
		if c.alert != nil {
			errs = append(errs, contradictingAlerts(s, c, all[:i])...)
			continue
		}
		for _, other := range all[:i] {
			same := other.alert == nil && c.Objective == other.Objective && canonical(c.Expr) == canonical(other.Expr) && c.Load == other.Load && c.Signal == other.Signal && sameSet(c.Over, other.Over)
			low, high := c, other
			if c.op == "<=" {
				low, high = other, c
			}
			if same && c.op != other.op && low.bound > high.bound {
				field, hint := "min", fmt.Sprintf("write at most %s", high.Max)
				if c.op == "<=" {
					field, hint = "max", fmt.Sprintf("write at least %s", low.Min)
				}
				if _, vain := c.objective.impossible(high.Max, ">="); field == "min" && vain != "" {
					hint = "leave one of them out"
				} else if _, vain := c.objective.impossible(low.Min, "<="); field == "max" && vain != "" {
					hint = "leave one of them out"
				}
				errs = append(errs, s.Errorf("gates."+c.Name+"."+field, hint, "gate %q asks for %s or more and gate %q for %s or less: both cannot pass", low.Name, low.Min, high.Name, high.Max))
			}
		}
	}
	return errs
}

// contradictingAlerts finds gates by which an alert must fire and must not in the same phases.
func contradictingAlerts(s *scenario.Scenario, c Compiled, before []Compiled) []error {
	for _, other := range before {
		if other.alert == nil || other.Alert != c.Alert || other.alert.fires == c.alert.fires {
			continue
		}
		fires, silent := c, other
		if other.alert.fires {
			fires, silent = other, c
		}
		if !slices.ContainsFunc(fires.Over, func(p string) bool { return !slices.Contains(silent.Over, p) }) {
			return []error{s.Errorf("gates."+c.Name+".fires", "name other phases in over", "gates %q and %q ask that %s fires and that it does not: both cannot pass", other.Name, c.Name, c.Alert)}
		}
	}
	return nil
}

func sameSet(a, b []string) bool {
	in := func(of []string) func(string) bool { return func(x string) bool { return !slices.Contains(of, x) } }
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}

// isGate tells the path of a gate from that of a figure, which has no bound.
func isGate(path string) bool { return strings.HasPrefix(path, "gates.") }

// unattainable refuses what the phases and signals that a gate is about cannot give.
func (c *Compiled) unattainable(s *scenario.Scenario, path string) error {
	if s.Recorded() || !isGate(path) {
		return nil
	}
	for _, name := range c.Over {
		if p := s.Phase(name); c.objective.Name == "phase-duration" && c.op == "<=" && p.For.D().Seconds() > c.bound {
			return s.Errorf(path+".max", fmt.Sprintf("more than %s", p.For), "phase %q lasts %s", name, p.For)
		} else if c.objective.Name == "phase-duration" && c.op == ">=" && p.Until == "" && p.For.D().Seconds() < c.bound {
			return s.Errorf(path+".min", fmt.Sprintf("at most %s, or a longer phase", p.For), "phase %q lasts %s", name, p.For)
		} else if c.objective.Name == "phase-duration" && c.op == ">=" && p.Until != "" && p.Within.D().Seconds() < c.bound {
			return s.Errorf(path+".min", fmt.Sprintf("at most %s, or a longer within", p.Within), "phase %q ends after %s, met or not", name, p.Within)
		}
	}
	for _, signal := range s.Signals {
		if c.objective.Name == "signal-returned" && len(signal.After) == 0 && (c.Signal == "" || c.Signal == signal.Name) {
			return s.Errorf(path+".objective", fmt.Sprintf("add after: to signal %q, or name another with signal:", signal.Name), "signal %q names no phases after the fault", signal.Name)
		}
	}
	return nil
}
