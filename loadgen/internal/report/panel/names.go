package panel

import (
	"regexp"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

var placeholder = regexp.MustCompile(`\{\{\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*\}\}`)

// name fills a legend with a series' labels.
func name(legend string, labels map[string]string) string {
	s := chart.Clean(placeholder.ReplaceAllStringFunc(legend, func(m string) string {
		return labels[placeholder.FindStringSubmatch(m)[1]]
	}))
	if s == "" {
		s = "(no label)"
	}
	return chart.Shorten(s, 60)
}

// threshold writes where a warning begins; of some rates any is too much.
func threshold(unit string, v float64) string {
	if v <= 0.001 && (unit == "reqps" || unit == "ops" || unit == "cps") {
		return "any"
	}
	return chart.Grafana(unit, v)
}
