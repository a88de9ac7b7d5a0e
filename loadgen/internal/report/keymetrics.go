package report

import (
	"context"
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

func keyView(_ context.Context, p *page) (any, error) {
	var blocks []keyBlock
	for _, k := range p.result.Key {
		blocks = append(blocks, newKeyBlock(k, p.result, p.Sections))
	}
	return blocks, nil
}

type keyBlock struct {
	Name, Missing string
	Histogram     bool
	Rows          []keyRowView
}

type keyRowView struct {
	result.KeyRow
	Label, Value, Count, Guide, Spark string
	Exceeds                           bool
}

func newKeyBlock(k result.KeyMetric, r result.Result, drawnSections []drawnSection) keyBlock {
	b := keyBlock{Name: terminal.Clean(k.Name), Missing: terminal.Clean(k.Missing)}
	if len(k.Rows) == 0 && b.Missing == "" {
		b.Missing = "no rows"
	}
	hours := runSeconds(r) / 3600
	for _, row := range k.Rows {
		b.Histogram = b.Histogram || row.P99 != nil
		v := keyRowView{KeyRow: row, Label: terminal.Clean(row.Label), Value: keyText(row), Count: chart.Scaled(row.Count, 3, []string{"", "k", "M", "G"})}
		if g, ok := guideOf(k.Name, row, hours); ok && keyValue(row) != nil {
			v.Guide, v.Exceeds = g.text, *keyValue(row) > g.bound
		}
		v.Spark = sparkline(k.Name, v.Label, drawnSections)
		b.Rows = append(b.Rows, v)
	}
	return b
}

// sparkline returns the SVG path of the line named label in the chart of a key metric, or "" if there is no such line.
func sparkline(metric, label string, sections []drawnSection) string {
	for _, s := range sections {
		for _, c := range s.Charts {
			for _, l := range c.Series {
				if c.Key == metric && l.Name == label {
					return l.Path + l.Dots
				}
			}
		}
	}
	return ""
}

// keyMetrics writes all four key metrics. To save lines, it writes several rows of a metric,
// such as the verbs of the API server, on one line if they fit.
func (t *terminalWriter) keyMetrics(r result.Result) {
	t.line("")
	t.line(t.paint("head", "KEY METRICS") + t.paint("dim", "  p99 or count of the run; ! = above the recommended maximum"))
	hours := runSeconds(r) / 3600
	const indent = 49 // width of the longest name, with the gaps around it
	for _, k := range r.Key {
		name := terminal.Clean(k.Name)
		if len(k.Rows) == 0 {
			missing := terminal.Shorten("NO DATA  "+terminal.Clean(k.Missing), t.width-indent)
			t.line(fmt.Sprintf("  %-*s%s", indent-2, name, missing))
			continue
		}
		for i, line := range keyLines(k, hours, t.width-indent) {
			if i > 0 {
				name = ""
			}
			t.line(fmt.Sprintf("  %-*s%s", indent-2, name, line))
		}
	}
}

// keyLines returns the rows of a metric as lines, with as many rows on a line as fit.
func keyLines(k result.KeyMetric, hours float64, width int) []string {
	labels, values := 0, 0
	for _, row := range k.Rows {
		labels = max(labels, terminal.TextWidth(terminal.Clean(row.Label)))
		values = max(values, terminal.TextWidth(keyText(row)))
	}
	labels = min(labels, width/2)
	one := labels + 1 + values + 1
	perLine := max((width+2)/(one+2), 1)
	var lines []string
	for i, row := range k.Rows {
		mark := " "
		if exceeds(k.Name, row, hours) {
			mark = "!"
		}
		c := fmt.Sprintf("%-*s %*s%s", labels, terminal.Shorten(terminal.Clean(row.Label), labels), values, keyText(row), mark)
		if i%perLine == 0 {
			lines = append(lines, c)
		} else {
			lines[len(lines)-1] += "  " + c
		}
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}
