package panel

import (
	"cmp"
	"context"
	"fmt"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// Checked is the result of one query of a panel on a recording.
type Checked struct {
	Dashboard, Panel string // UID of the dashboard, title of the panel
	Query            string // RefID of the query
	// Numbers is the number of finite points in the answer.
	Numbers int
	// Excuse is the documented reason why the result may have no numbers. Empty means that there is no such reason.
	Excuse string
	// Problem describes what is wrong: the query fails, its result is infinite, or its result is empty and no excuse
	// applies to this recording. Empty means that there is no problem.
	Problem string
}

func (c Checked) String() string {
	what := cmp.Or(c.Problem, c.Excuse, fmt.Sprintf("%d numbers", c.Numbers))
	return fmt.Sprintf("%s: %s %s: %s", c.Dashboard, c.Panel, c.Query, what)
}

// Check runs every query of every dashboard. Each query must have a finite result. An empty result is accepted if the
// dashboard documents a reason for it and the recording does not contradict the reason. Check fails if the dashboards
// cannot be read, if the query that tests a reason fails, or if ctx ends.
func Check(ctx context.Context, src chart.Source, span Span) ([]Checked, error) {
	step := span.step(maxPoints)
	answers, err := ask(ctx, src, span, step)
	if err != nil {
		return nil, err
	}
	refuted := map[string]bool{} // key: the query that tests a reason; true if the reason does not apply
	var all []Checked
	for _, a := range answers {
		c := Checked{Dashboard: a.dashboard.UID, Panel: a.panel.Title, Query: a.query.RefID}
		infinite := 0
		c.Numbers, infinite = a.finite()
		switch reason := a.query.Reason; {
		case a.err != nil:
			c.Problem = a.err.Error()
		case infinite > 0:
			c.Problem = fmt.Sprintf("%d values are infinite", infinite)
		case c.Numbers > 0:
		case reason == nil:
			c.Problem = "no data, and the dashboard names no reason for it"
		default:
			has, known := refuted[reason.Unless]
			if !known {
				if has, err = happened(ctx, src, span, reason.Unless); err != nil {
					return nil, err
				}
				refuted[reason.Unless] = has
			}
			if has {
				c.Problem = fmt.Sprintf("no data; the reason %q does not apply: %s has a result", reason.Text, reason.Unless)
			} else {
				c.Excuse = reason.Text
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// happened reports whether an expression has a value at any time of the span.
func happened(ctx context.Context, src chart.Source, span Span, expr string) (bool, error) {
	series, err := src.Range(ctx, expr, span.Start, span.End, span.step(4*maxPoints))
	if err != nil {
		return false, fmt.Errorf("check whether a reason for missing data applies: %w", err)
	}
	numbers, infinite := answer{series: series}.finite()
	return numbers+infinite > 0, nil
}
