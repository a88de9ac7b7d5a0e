package panel

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

//go:embed panels.tmpl
var files embed.FS

//go:embed panels.css
var style string

// Style returns the CSS that the output of HTML needs in addition to the report's style sheet.
func Style() string { return style }

// MaxBytes is the maximum size of the output of HTML. For a larger output, HTML draws fewer points.
const MaxBytes = 1 << 20

// minPoints is the minimum number of points of a line, even if the output exceeds MaxBytes.
const minPoints = 20

type section struct {
	ID, Title, Tells string
	Rows             []rowOf
	Panels, Empty    int
}

type rowOf struct {
	Title    string
	Pictures []picture
}

type view struct {
	Sections []section
	Wide     int // width of the drawings: the number of points minus one
	Phases   []stretch
	Faults   []stretch
	From, To float64 // time range of the drawings, in seconds since Run.Zero
	Clocks   []string
	Missing  string
}

// stretch is a time range on the time axis, in the coordinates of the drawings.
type stretch struct {
	X, W int
	Odd  bool
}

// HTML draws all dashboards, each collapsed, for the page of a report. The page must include Style. If src is nil, the
// output says that nothing was recorded. HTML fails only if the dashboards cannot be read or ctx ends; the error of a
// query is shown in its panel.
func HTML(ctx context.Context, src chart.Source, run Run) (template.HTML, error) {
	if src == nil || !run.End.After(run.Start) {
		return render(view{Missing: "No metrics were recorded in this run, so there is nothing to draw."})
	}
	for most := maxPoints; ; most /= 2 {
		step := run.step(most)
		answers, err := ask(ctx, src, run.Span, step)
		if err != nil {
			return "", err
		}
		page, err := render(newView(run, step, answers))
		if err != nil || len(page) <= MaxBytes || most < 2*minPoints {
			return page, err
		}
	}
}

func render(v view) (template.HTML, error) {
	tmpl, err := template.ParseFS(files, "panels.tmpl")
	if err != nil {
		return "", err
	}
	var buf bytes.Buffer
	if err := tmpl.Execute(&buf, v); err != nil {
		return "", fmt.Errorf("draw the dashboards: %w", err)
	}
	return template.HTML(buf.String()), nil // the template has escaped it
}

func newView(run Run, step time.Duration, answers []answer) view {
	a := artist{span: run.Span, step: step, points: run.points(step)}
	v := view{Wide: max(a.points-1, 1)}
	at := func(t time.Time) int { return min(max(int(t.Sub(run.Start)/step), 0), v.Wide) }
	for i, p := range run.Phases {
		v.Phases = append(v.Phases, stretch{at(p.Begin), at(p.End) - at(p.Begin), i%2 == 1})
	}
	for _, f := range run.Faults() {
		v.Faults = append(v.Faults, stretch{at(f.Begin), max(at(f.End)-at(f.Begin), 1), false})
	}
	zero := cmp.Or(run.Zero, run.Start)
	v.From = run.Start.Sub(zero).Seconds()
	v.To = v.From + float64(v.Wide)*step.Seconds()
	for i := range 5 {
		v.Clocks = append(v.Clocks, chart.Clock((run.Start.Sub(zero) + time.Duration(i)*run.End.Sub(run.Start)/4).Seconds()))
	}
	pictures := map[string]picture{}
	for _, drawn := range byPanel(answers) {
		pictures[drawn[0].dashboard.UID+drawn[0].panel.Title] = a.draw(drawn)
	}
	var seen []string
	for _, x := range answers {
		if !slices.Contains(seen, x.dashboard.UID) {
			seen = append(seen, x.dashboard.UID)
			v.Sections = append(v.Sections, newSection(x.dashboard, pictures))
		}
	}
	return v
}

func newSection(d dashboards.Dashboard, pictures map[string]picture) section {
	s := section{ID: d.UID, Title: d.Title, Tells: d.Tells}
	for _, r := range d.Rows {
		out := rowOf{Title: r.Title}
		for _, p := range r.Panels {
			drawn := pictures[d.UID+p.Title]
			out.Pictures = append(out.Pictures, drawn)
			s.Panels++
			if drawn.Empty != "" {
				s.Empty++
			}
		}
		s.Rows = append(s.Rows, out)
	}
	return s
}
