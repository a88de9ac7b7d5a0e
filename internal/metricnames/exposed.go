package metricnames

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed exposed.txt
var exposed string

// runtimePrefixes are the prefixes of metrics that Prometheus' client library and the scrapes themselves add.
var runtimePrefixes = []string{"go_", "process_", "promhttp_", "scrape_"}

// Exposed is the set of metrics that the components of the newest release, or the load generator, can expose. It
// contains all metrics that their source declares, whether or not the table of metrics contains them.
type Exposed struct {
	names    []string
	exact    map[string]bool
	suffixes []string // suffixes of metrics whose prefix is known only at run time
}

// ReadExposed reads the set of exposed metrics from the embedded list and the table.
func ReadExposed() Exposed {
	e := Exposed{exact: map[string]bool{"up": true, "ALERTS": true, "ALERTS_FOR_STATE": true}}
	add := func(name string) {
		if !e.exact[name] {
			e.exact[name], e.names = true, append(e.names, name)
		}
	}
	for _, r := range rows() {
		if !strings.HasSuffix(r.Name, "*") {
			add(r.Name)
		}
	}
	for line := range strings.Lines(exposed) {
		line = strings.TrimSpace(line)
		suffix, part := strings.CutPrefix(line, "*")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case part:
			e.suffixes = append(e.suffixes, suffix)
		default:
			add(line)
		}
	}
	return e
}

// Names returns the names of those metrics in the set whose full name is known.
func (e Exposed) Names() []string { return e.names }

// Has reports whether a component can expose a series with the given name. The series of a histogram have names that
// end in _bucket, _sum or _count.
func (e Exposed) Has(series string) bool {
	if slices.ContainsFunc(runtimePrefixes, func(p string) bool { return strings.HasPrefix(series, p) }) {
		return true
	}
	for _, end := range []string{"", "_bucket", "_sum", "_count"} {
		name, ok := strings.CutSuffix(series, end)
		if ok && (e.exact[name] || slices.ContainsFunc(e.suffixes, func(s string) bool { return strings.HasSuffix(name, s) })) {
			return true
		}
	}
	return false
}
