package alerting

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Reach is when an alert can see something at all.
type Reach struct {
	// Every is how often it is evaluated, or the slowest of the records that it
	// reads, if that is more seldom.
	Every time.Duration
	// For is how long its condition has to hold before it fires.
	For time.Duration
	// Back is how far at the least it looks back: the offset of its group, and of
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
				r.Back = max(r.Back, g.offset()+s.back(x.Expr, nil))
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

func (g Group) offset() time.Duration {
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

// recorded is how far back records of a name look, 0 where there is none.
func (s Ruleset) recorded(name string, within []string) time.Duration {
	least := time.Duration(-1)
	for _, g := range s {
		for _, r := range g.Rules {
			if name == "" || r.Record != name || slices.Contains(within, name) {
				continue
			}
			if back := g.offset() + s.back(r.Expr, append(slices.Clone(within), name)); least < 0 || back < least {
				least = back
			}
		}
	}
	return max(least, 0)
}
