package panel

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// Calm returns the result of Moved for moments at which nothing was done: how many
// panels it would hold to have moved (seen), of how many that it looked at. It
// takes the longest phase in which nothing begins or ends, and lets a cause that
// never was last for `last` there, after so much rest, over and over.
func Calm(ctx context.Context, src chart.Source, run Run, rest, last time.Duration) (seen, looked int, err error) {
	claims, err := allClaims()
	if err != nil {
		return 0, 0, err
	}
	quiet := quietest(run)
	for start := quiet.Begin; !start.Add(rest + last).After(quiet.End); start = start.Add(rest + last) {
		part := Run{Span: Span{start, start.Add(rest + last), run.Scrape}, Phases: []Mark{{"calm", start, quiet.End}}}
		for _, c := range claims {
			c.Begin, c.End = start.Add(rest), part.End
			part.Causes = append(part.Causes, c)
		}
		motions, err := Moved(ctx, src, part)
		if err != nil {
			return 0, 0, err
		}
		moved := map[string]bool{} // by panel, whatever it is about
		for _, m := range motions {
			moved[m.Dashboard+m.Panel] = moved[m.Dashboard+m.Panel] || m.Seen
		}
		for _, m := range moved {
			if looked++; m {
				seen++
			}
		}
	}
	return seen, looked, nil
}

// allClaims is a cause for whatever a panel may be about.
func allClaims() ([]Cause, error) {
	boards, err := dashboards.Load()
	if err != nil {
		return nil, err
	}
	var all []Cause
	for _, d := range boards {
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				for _, claim := range p.Moves {
					name, of, _ := strings.Cut(claim, " ")
					all = append(all, Cause{Mark: Mark{Name: name}, Of: []string{of}})
				}
			}
		}
	}
	return all, nil
}

// quietest is the longest phase in which no fault and no load begins or ends.
func quietest(run Run) Mark {
	var best Mark
	for _, p := range run.Phases {
		inside := func(t time.Time) bool { return t.After(p.Begin) && t.Before(p.End) }
		busy := slices.ContainsFunc(run.Causes, func(c Cause) bool { return inside(c.Begin) || inside(c.End) })
		if !busy && p.End.Sub(p.Begin) > best.End.Sub(best.Begin) {
			best = p
		}
	}
	return best
}
