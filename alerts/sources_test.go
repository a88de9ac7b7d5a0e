package alerts

import (
	"slices"
	"testing"

	"github.com/stormglass/stormglass/internal/metricsource"
)

// declaration is a metric as the source of a component declares it.
type declaration struct {
	kind   string // counter, gauge or histogram
	labels []string
	edges  []float64 // of a histogram's buckets
	// deprecated is the version since which it is: an alpha metric is hidden at once.
	deprecated string
}

// TestFamilies holds Families against the source of the very modules that
// go.mod pins: a rename or a lost label upstream fails here, not in an alert
// that has gone quiet.
func TestFamilies(t *testing.T) {
	sources := readSources(t)
	for _, f := range Families() {
		if f.Source == "" {
			continue
		}
		d, ok := sources[f.Source][f.Name]
		if !ok {
			t.Errorf("%s does not declare %s", f.Source, f.Name)
			continue
		}
		if d.kind != f.Type {
			t.Errorf("%s is a %s in %s, a %s in Families", f.Name, d.kind, f.Source, f.Type)
		}
		if d.deprecated != "" {
			t.Errorf("%s is deprecated since %s", f.Name, d.deprecated)
		}
		if f.Type == "histogram" && d.edges == nil {
			t.Errorf("%s: the edges of the buckets of %s cannot be read", f.Source, f.Name)
		}
		if !slices.Equal(d.labels, f.Labels) {
			t.Errorf("%s has the labels %q in %s, %q in Families", f.Name, d.labels, f.Source, f.Labels)
		}
	}
}

// readSources is what each file that Families names declares, by the name of the metric.
func readSources(t *testing.T) map[string]map[string]declaration {
	t.Helper()
	var files []string
	for _, f := range Families() {
		files = append(files, f.Source)
	}
	all := map[string]map[string]declaration{}
	for file, metrics := range metricsource.Read(t, files...) {
		all[file] = map[string]declaration{}
		for name, m := range metrics {
			all[file][name] = declaration{m.Type, m.Labels, m.Edges, m.Deprecated}
		}
	}
	return all
}
