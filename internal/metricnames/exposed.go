package metricnames

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed exposed.txt
var exposed string

// runtimePrefixes begin the names of what Prometheus' libraries, scrapes and rules add.
var runtimePrefixes = []string{"go_", "process_", "promhttp_", "scrape_"}

// Exposed tells which metrics some component of the newest release, or the generator, can have: those that the source of the
// components declares, whether or not the table has them.
type Exposed struct {
	names    []string
	exact    map[string]bool
	suffixes []string // of names whose beginning is put together at run time
}

// ReadExposed reads the list.
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

// Names lists the metrics whose whole names are known.
func (e Exposed) Names() []string { return e.names }

// Has reports whether a series of that name can be exposed; the series of a histogram end in _bucket, _sum and _count.
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
