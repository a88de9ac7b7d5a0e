package alerting

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Reach describes how soon an alert can fire.
type Reach struct {
	// Every is the longest evaluation interval of the alert and of the recording rules that it
	// reads.
	Every time.Duration
	// For is the time for which the condition must hold before the alert fires.
	For time.Duration
	// Back is the minimum age of the data that the alert reads: the offset of its group plus the
	// smallest offset of its selectors.
	Back time.Duration
}

// Reach returns the reach of the alerts with the given name. If several alerts share the name, each
// field is the maximum of all.
func (s Ruleset) Reach(alert string) Reach {
	var r Reach
	for _, g := range s.Only(alert) {
		r.Every = max(r.Every, cmp.Or(time.Duration(g.Interval), defaultEvery))
		for _, x := range g.Rules {
			if x.Alert == alert {
				r.For = max(r.For, time.Duration(x.For))
				r.Back = max(r.Back, offset(g)+s.back(x.Expr, nil))
			}
		}
	}
	return r
}

// next returns the time of the first evaluation at or after start. first is the time of the first
// evaluation of the rules.
func (r Reach) next(first, start time.Time) time.Time {
	rounds := (start.Sub(first) + r.Every - 1) / r.Every
	return first.Add(max(rounds, 0) * r.Every)
}

// Looks reports whether the alert is evaluated at least once between start and end. first is the
// time of the first evaluation of the rules.
func (r Reach) Looks(first, start, end time.Time) bool { return !r.next(first, start).After(end) }

// Fires reports whether the alert would fire by the time `by` if its condition held from the first
// scrape on. first is the time of the first evaluation of the rules.
func (r Reach) Fires(first, by time.Time) bool {
	holds := r.next(first, first.Add(r.Back))
	return !r.next(first, holds.Add(r.For)).After(by)
}

func offset(g alerts.Group) time.Duration {
	if g.QueryOffset == nil {
		return 0
	}
	return time.Duration(*g.QueryOffset)
}

// back returns the smallest offset of the selectors in an expression, or 0 if there are no
// selectors. For a selector of a record, it adds the smallest offset in the recording rule. within
// lists the records on the current path, so that a cycle of records ends.
func (s Ruleset) back(expr string, within []string) time.Duration {
	parsed, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return 0 // cannot happen: rules in a set have been parsed
	}
	least := time.Duration(-1)
	parser.Inspect(parsed, func(n parser.Node, path []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		back := v.OriginalOffset
		for _, p := range path {
			if sub, ok := p.(*parser.SubqueryExpr); ok {
				back += sub.OriginalOffset
			}
		}
		back += s.recorded(MetricOf(v.LabelMatchers), within)
		if least < 0 || back < least {
			least = back
		}
		return nil
	})
	return max(least, 0)
}

// recorded returns the minimum age of the data that the records with the given name read, or 0 if
// there are no such records.
func (s Ruleset) recorded(name string, within []string) time.Duration {
	least := time.Duration(-1)
	for _, g := range s {
		for _, r := range g.Rules {
			if name == "" || r.Record != name || slices.Contains(within, name) {
				continue
			}
			if back := offset(g) + s.back(r.Expr, append(slices.Clone(within), name)); least < 0 || back < least {
				least = back
			}
		}
	}
	return max(least, 0)
}

// Hindsight describes how long before the firing of an alert its cause may lie.
type Hindsight struct {
	// Longest is the maximum age of the data that the condition reads: the largest range with its
	// offsets. It includes the ranges in the records that the alert reads. For is the time for which
	// the condition must hold before the alert fires.
	Longest, For time.Duration
	// Shortest is the smallest range that the alert reads. Zero means that it reads no range.
	Shortest time.Duration
}

// Whole returns the maximum time from the cause of an alert to its firing.
func (h Hindsight) Whole() time.Duration { return h.For + h.Longest }

// Hindsight returns the hindsight of the alerts with the given name. If several alerts share the
// name, it combines their longest times and their smallest range.
func (s Ruleset) Hindsight(alert string) (h Hindsight) {
	for _, g := range s.Only(alert) {
		for _, x := range g.Rules {
			if x.Alert != alert {
				continue
			}
			shortest, longest := s.ranges(x.Expr, nil)
			h.For, h.Longest = max(h.For, time.Duration(x.For)), max(h.Longest, offset(g)+longest)
			if shortest > 0 && (h.Shortest == 0 || shortest < h.Shortest) {
				h.Shortest = shortest
			}
		}
	}
	return h
}

// ranges returns shortest, the smallest range in an expression (0 without ranges), and longest, the
// maximum age of the data that it reads through ranges, subqueries and offsets. Both include the
// recording rules on which the expression depends, except the records in within.
func (s Ruleset) ranges(expr string, within []string) (shortest, longest time.Duration) {
	parsed, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return 0, 0 // cannot happen: rules in a set have been parsed
	}
	least := func(of time.Duration) {
		if of > 0 && (shortest == 0 || of < shortest) {
			shortest = of
		}
	}
	parser.Inspect(parsed, func(n parser.Node, path []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		back := v.OriginalOffset
		for _, p := range path {
			switch p := p.(type) {
			case *parser.MatrixSelector:
				least(p.Range)
				back += p.Range
			case *parser.SubqueryExpr:
				back += p.Range + p.OriginalOffset
			}
		}
		most := time.Duration(0)
		name := MetricOf(v.LabelMatchers)
		for _, g := range s {
			for _, r := range g.Rules {
				if name == "" || r.Record != name || slices.Contains(within, name) {
					continue
				}
				short, long := s.ranges(r.Expr, append(slices.Clone(within), name))
				least(short)
				most = max(most, offset(g)+long)
			}
		}
		longest = max(longest, back+most)
		return nil
	})
	return shortest, longest
}
