package alerting

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Reach is when an alert can see something at all.
type Reach struct {
	// Every is its evaluation interval, or that of the slowest of the records that it
	// reads, if that is more seldom.
	Every time.Duration
	// For is the time that its condition has to hold before it fires.
	For time.Duration
	// Back is the least time that it looks back: the offset of its group, and of
	// the selector that has the smallest one. It sees nothing of what was after.
	Back time.Duration
}

// Reach of the alerts of a name; of several the longest counts.
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

// next is the first moment from start on at which an alert is evaluated whose
// rules were first evaluated at a given time.
func (r Reach) next(first, start time.Time) time.Time {
	rounds := (start.Sub(first) + r.Every - 1) / r.Every
	return first.Add(max(rounds, 0) * r.Every)
}

// Looks reports whether it is evaluated at some time from start to end, where its
// rules were first evaluated at a given time.
func (r Reach) Looks(first, start, end time.Time) bool { return !r.next(first, start).After(end) }

// Fires reports whether it would have fired by a time if its condition had held from
// the first scrape on, at which its rules were first evaluated.
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

// back is the smallest offset of an expression's selectors, through the records
// that they read; those of within are being followed already. An expression
// without selectors looks at nothing, so not back.
func (s Ruleset) back(expr string, within []string) time.Duration {
	parsed, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return 0 // it was parsed before it became part of the set
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

// recorded is the time that records of a name look back; 0 if no rule records the name.
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

// Hindsight says how long an alert sees what is over.
type Hindsight struct {
	// Longest is the most that its condition looks back: the largest range with its offsets, through the records that it
	// reads. For is the time that the condition has to hold before it fires.
	Longest, For time.Duration
	// Shortest is the smallest range that it reads. Zero: it reads no range.
	Shortest time.Duration
}

// Whole is how long before it fires an alert may have begun to see its cause.
func (h Hindsight) Whole() time.Duration { return h.For + h.Longest }

// Hindsight of the alerts of a name; of several the longest counts, and the smallest range of all.
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

// ranges are the smallest range of an expression, 0 where it has none, and the most that it looks back: by ranges,
// subqueries and offsets, through the records that it reads. Records named in within are left out.
func (s Ruleset) ranges(expr string, within []string) (shortest, longest time.Duration) {
	parsed, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return 0, 0 // it was parsed before it became part of the set
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
