package metricnames

import (
	"slices"
	"testing"
)

// TestDeclared compares the table with the source of the module versions in go.mod. If a component renames a metric or
// removes a label, this test fails; otherwise an alert would silently stop firing.
func TestDeclared(t *testing.T) {
	all := slices.Concat(For(Rules), For(Dashboards))
	var files []string
	for _, m := range all {
		files = append(files, m.Source)
	}
	sources := readSources(t, files...)
	for _, m := range all {
		if m.Source == "" {
			continue
		}
		d, ok := sources[m.Source][m.Name]
		switch {
		case !ok:
			t.Errorf("%s does not declare %s", m.Source, m.Name)
		case d.Type != m.Type || !slices.Equal(d.Labels, m.Labels):
			t.Errorf("%s is a %s with the labels %q in %s, but a %s with %q in the table", m.Name, d.Type, d.Labels, m.Source, m.Type, m.Labels)
		case d.Deprecated != "":
			t.Errorf("%s is deprecated since %s", m.Name, d.Deprecated)
		}
	}
	for _, m := range For(Rules) {
		if m.Source != "" && m.Type == "histogram" && sources[m.Source][m.Name].Edges == nil {
			t.Errorf("%s: the test cannot read the bucket bounds of %s", m.Source, m.Name)
		}
	}
}

// TestTableEntriesAreUniqueAndTyped checks that each metric occurs once, and that the metrics of rules and dashboards
// have a type.
func TestTableEntriesAreUniqueAndTyped(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		if seen[r.Name] {
			t.Errorf("%s occurs twice", r.Name)
		}
		seen[r.Name] = true
		if r.of == "" || (r.Type == "") != (r.by == Diagnosis) {
			t.Errorf("%s has the type %q for %s", r.Name, r.Type, r.by)
		}
	}
}

func TestRecordedOmitsFamiliesCoveredByPrefix(t *testing.T) {
	names := Recorded(Kube, Scheduler)
	if !slices.Contains(names, "workqueue_*") || slices.Contains(names, "workqueue_depth") || !slices.Contains(names, "kubernetes_build_info") || slices.Contains(names, "etcd_server_*") {
		t.Errorf("%q", names)
	}
}
