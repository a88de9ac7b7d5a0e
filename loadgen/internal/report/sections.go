package report

import (
	"context"
	"fmt"
	"html/template"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/report/panel"
	"github.com/stormglass/stormglass/loadgen/result"
)

// place is where on the page a section stands.
type place int

const (
	first  place = iota // before the timeline
	middle              // in the timeline, below its axis
	last                // after it
)

// section is a part of the page. Its template is page/NAME.tmpl, which shows what
// view makes; view makes nil where the run has none of it.
type section struct {
	name  string
	place place
	view  func(ctx context.Context, p *page) (any, error)
}

// sections is the page, in its order. To add one: its view in a file of its own,
// its template, and a row here.
func sections() []section {
	whole := func(_ context.Context, p *page) (any, error) { return p, nil }
	return []section{
		{"gates", first, gatesView},
		{"key", first, keyView},
		{"tracks", middle, whole},
		{"recovery", middle, recoveryView},
		{"rollouts", middle, rolloutsView},
		{"charts", middle, whole},
		{"panels", last, panelsView},
		{"breakdown", last, breakdownView},
		{"detail", last, detailView},
		{"environment", last, environmentView},
	}
}

// summarySections is the summary for a terminal, in its order.
func summarySections() []func(*terminal, result.Result) {
	return []func(*terminal, result.Result){
		(*terminal).header, (*terminal).reasons, (*terminal).gates, (*terminal).keyMetrics, (*terminal).phases,
		(*terminal).rollouts, (*terminal).recovery, (*terminal).breakdown, (*terminal).cost,
	}
}

// fill renders the sections that the run has.
func (p *page) fill(ctx context.Context, tmpl *template.Template) error {
	places := map[place]*[]template.HTML{first: &p.First, middle: &p.Middle, last: &p.Last}
	for _, s := range sections() {
		view, err := s.view(ctx, p)
		if err != nil {
			return err
		}
		if view == nil {
			continue
		}
		var b strings.Builder
		if err := tmpl.ExecuteTemplate(&b, s.name, view); err != nil {
			return fmt.Errorf("render the section %s: %w", s.name, err)
		}
		*places[s.place] = append(*places[s.place], template.HTML(b.String())) // the template has escaped it
	}
	return nil
}

// panelsView is the dashboards' panels, on the clock of the page.
func panelsView(ctx context.Context, p *page) (any, error) {
	run := panel.RunOf(p.result, p.events, p.interval)
	run.Zero = p.Grid.Start
	return panel.HTML(ctx, p.src, run)
}
