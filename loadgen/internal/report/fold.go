package report

import (
	"regexp"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// folded are charts of a section that have nothing to show for one reason.
type folded struct{ Titles, Why string }

// fold takes the charts without data out of a section: each would take the room
// of a picture to say a few words.
func (d *drawnSection) fold() {
	for _, c := range d.Charts {
		if c.Missing == "" {
			continue
		}
		d.empty = append(d.empty, c)
		i := slices.IndexFunc(d.Folded, func(f folded) bool { return f.Why == c.Missing })
		if i < 0 {
			d.Folded = append(d.Folded, folded{c.Title, c.Missing})
		} else {
			d.Folded[i].Titles += "; " + c.Title
		}
	}
	d.Charts = slices.DeleteFunc(d.Charts, func(c chart.Chart) bool { return c.Missing != "" })
}

// metricName finds what is selected in an expression.
var metricName = regexp.MustCompile(`([a-z_]+)(?:\{[^}]*\})?\[`)

// missing says in words why a chart has nothing to show.
func (a *artist) missing(c metricChart, err error) string {
	targets := a.result.Run.Cluster.Targets
	scraped := slices.ContainsFunc(targets, func(t string) bool { return strings.Contains(t, c.Job) })
	switch {
	case a.src == nil:
		return "No metrics were recorded in this run."
	case err != nil:
		return "The query failed: " + chart.Clean(err.Error()) + "."
	case c.Job != "" && c.Job != jobGenerator && len(targets) > 0 && !scraped:
		return c.Job + " was not scraped: it is not among this run's targets."
	case c.Quiet != "":
		return c.Quiet
	}
	var names []string
	for _, q := range c.Queries {
		for _, found := range metricName.FindAllStringSubmatch(q.Expr, -1) {
			if n := strings.TrimSuffix(found[1], "_bucket"); !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return "No samples of " + strings.Join(names, ", ") + " in this run."
}
