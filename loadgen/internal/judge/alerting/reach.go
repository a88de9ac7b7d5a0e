package alerting

import (
	"cmp"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// Reach describes how soon an alert can fire.
type Reach struct {
	// Every is the longest evaluation interval of the alert and of the recording rules that it reads.
	Every time.Duration
	// For is the time for which the condition must hold before the alert fires.
	For time.Duration
	// Back is the minimum age of the data that the alert reads: the offset of its group plus the
	// smallest offset of its selectors.
	Back time.Duration
}

// Reach returns how soon the alerts with the given name can fire. If several alerts share the name, each field is the
// maximum of all.
func (s Ruleset) Reach(alert string) Reach {
	var r Reach
	spans := s.spans()
	for _, g := range s.Only(alert) {
		r.Every = max(r.Every, cmp.Or(time.Duration(g.Interval), defaultEvery))
		for _, x := range g.Rules {
			if x.Alert == alert {
				r.For = max(r.For, time.Duration(x.For))
				r.Back = max(r.Back, offset(g)+spans.of(x.Expr).least)
			}
		}
	}
	return r
}

// next returns the time of the alert's first evaluation at or after start. `first` is the time of the first evaluation
// of the rules.
func (r Reach) next(first, start time.Time) time.Time {
	rounds := (start.Sub(first) + r.Every - 1) / r.Every
	return first.Add(max(rounds, 0) * r.Every)
}

// Looks reports whether Prometheus evaluates the alert at least once between start and end. `first` is the time of the
// first evaluation of the rules.
func (r Reach) Looks(first, start, end time.Time) bool { return !r.next(first, start).After(end) }

// Fires reports whether the alert would fire at or before the time `by` if its condition held from the first scrape on.
// `first` is the time of the first evaluation of the rules.
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

// Hindsight describes how much time can pass between the cause of an alert and its firing.
type Hindsight struct {
	// Longest is the maximum age of the data that the condition reads: the largest sum of ranges and offsets, including
	// ranges and offsets in recording rules. For is the time for which the condition must hold before the alert fires.
	Longest, For time.Duration
	// Shortest is the smallest range that the alert reads, or 0 if it reads no range.
	Shortest time.Duration
}

// Whole returns the maximum time from the cause of an alert to its firing.
func (h Hindsight) Whole() time.Duration { return h.For + h.Longest }

// Hindsight returns how much time can pass between the cause of an alert with the given name and its firing. If several
// alerts share the name, it combines their longest times and their smallest range.
func (s Ruleset) Hindsight(alert string) (h Hindsight) {
	var reads span
	spans := s.spans()
	for _, g := range s.Only(alert) {
		for _, x := range g.Rules {
			if x.Alert == alert {
				h.For = max(h.For, time.Duration(x.For))
				reads.include(spans.of(x.Expr), offset(g))
			}
		}
	}
	h.Longest, h.Shortest = reads.longest, reads.shortest
	return h
}

// span describes the age of the data that an expression reads, directly and through recording rules.
type span struct {
	reads bool // whether the expression reads any data
	// least is the smallest offset of the selectors. It includes the offsets of recording rules.
	least time.Duration
	// longest is the maximum age of data that ranges, subqueries and offsets select. shortest is the smallest range, or 0
	// if the expression reads no range.
	longest, shortest time.Duration
}

// include extends s by the span `data`, which the expression reads with the given offset.
func (s *span) include(data span, offset time.Duration) {
	if youngest := max(offset+data.least, 0); !s.reads || youngest < s.least {
		s.least = youngest
	}
	s.reads = true
	s.longest = max(s.longest, offset+data.longest)
	s.narrow(data.shortest)
}

func (s *span) narrow(r time.Duration) {
	if r > 0 && (s.shortest == 0 || r < s.shortest) {
		s.shortest = r
	}
}

// spans computes the span of expressions. It caches the span of each recording rule, because a chain of rules may read
// one rule very often.
type spans struct {
	rules   Ruleset
	records map[string]span
}

func (s Ruleset) spans() spans { return spans{s, map[string]span{}} }

func (s spans) of(expr string) (all span) {
	parsed, err := archive.NewParser().ParseExpr(expr)
	if err != nil {
		return all // cannot happen: rules in a set have been parsed
	}
	parser.Inspect(parsed, func(n parser.Node, path []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		data, offset := s.record(MetricOf(v.LabelMatchers)), v.OriginalOffset
		for _, p := range path {
			switch p := p.(type) {
			case *parser.MatrixSelector:
				data.narrow(p.Range)
				data.longest += p.Range
			case *parser.SubqueryExpr:
				data.longest += p.Range
				offset += p.OriginalOffset
			}
		}
		all.include(data, offset)
		return nil
	})
	return all
}

// record combines the spans of the recording rules with the given name. It returns the zero span if there are no such
// rules. A recording rule that depends on itself adds nothing to its own span.
func (s spans) record(name string) (all span) {
	if known, ok := s.records[name]; ok || name == "" {
		return known
	}
	s.records[name] = all
	for _, g := range s.rules {
		for _, r := range g.Rules {
			if r.Record == name {
				all.include(s.of(r.Expr), offset(g))
			}
		}
	}
	s.records[name] = all
	return all
}
