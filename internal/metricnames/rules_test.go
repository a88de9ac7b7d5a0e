package metricnames

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/alerts"
)

// TestRulesNameKnownMetrics checks that every selector names a known metric or record, with labels and buckets that the
// metric has, and that no rule takes the rate of a gauge.
func TestRulesNameKnownMetrics(t *testing.T) {
	families := map[string]Metric{}
	for _, f := range For(Rules) {
		families[f.Name] = f
	}
	unused := maps.Clone(families)
	var files []string
	for _, f := range families {
		files = append(files, f.Source)
	}
	sources := readSources(t, files...)
	groups, err := alerts.Load()
	if err != nil {
		t.Fatal(err)
	}
	var rules []rulefmt.Rule
	records := map[string]bool{}
	for _, g := range groups {
		for _, r := range g.Rules {
			rules, records[r.Record] = append(rules, r), r.Record != ""
		}
	}
	for _, r := range rules {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		parser.Inspect(parsed, func(n parser.Node, path []parser.Node) error {
			name := r.Record + r.Alert
			s, ok := n.(*parser.VectorSelector)
			if !ok || records[s.Name] {
				return nil
			}
			f, ok := Family(families, s.Name)
			if !ok {
				t.Errorf("%s reads %s, which is neither a known metric nor a record", name, s.Name)
				return nil
			}
			delete(unused, f.Name)
			for _, m := range s.LabelMatchers {
				known := append([]string{model.MetricNameLabel, "job", "instance", "cluster"}, f.Labels...)
				if strings.HasSuffix(s.Name, "_bucket") {
					known = append(known, "le")
				}
				if !slices.Contains(known, m.Name) {
					t.Errorf("%s: %s has no label %s", name, s.Name, m.Name)
				}
				if edges := sources[f.Source][f.Name].Edges; m.Name == "le" && edges != nil {
					if n := edgesMatched(m, edges); n != 1 {
						t.Errorf("%s: %s matches %d edges of the buckets of %s, want one", name, m, n, f.Name)
					}
				}
			}
			for _, n := range path {
				if call, ok := n.(*parser.Call); ok && f.Type == "gauge" && slices.Contains([]string{"rate", "increase", "irate", "resets"}, call.Func.Name) {
					t.Errorf("%s takes the %s of the gauge %s", name, call.Func.Name, s.Name)
				}
			}
			return nil
		})
	}
	for name := range unused {
		t.Errorf("no rule reads %s", name)
	}
}

// edgesMatched returns the number of bucket bounds that a matcher of the label le matches. Prometheus 2 and 3 write
// bounds differently. A bound counts only if the matcher matches both forms.
func edgesMatched(m *labels.Matcher, edges []float64) int {
	n := 0
	for _, e := range edges {
		two := strconv.FormatFloat(e, 'g', -1, 64)
		three := two
		if !strings.ContainsAny(two, ".e") {
			three += ".0"
		}
		if m.Matches(two) && m.Matches(three) {
			n++
		}
	}
	return n
}
