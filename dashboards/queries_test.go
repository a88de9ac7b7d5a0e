package dashboards

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/internal/metricnames"
)

var window = Window{Rate: 20 * time.Second, Interval: 5 * time.Second, Range: 10 * time.Minute}

func mustAsker(t *testing.T) *Asker {
	t.Helper()
	a, err := NewAsker()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// exprs visits every query, including the queries of annotations and reasons.
func exprs(t *testing.T, visit func(name, expr string)) {
	t.Helper()
	each(t, func(_ Dashboard, name string, p Panel) {
		for _, x := range p.Queries {
			visit(name+" "+x.RefID, x.Expr)
			if x.Reason != nil {
				visit(name+" "+x.RefID+", its reason", x.Reason.Unless)
			}
		}
	})
	each2(t, func(uid string, d raw) {
		for _, a := range d.Annotations.List {
			visit(uid+": annotation "+a.Name, a.Target.Expr)
		}
	})
}

// families holds the metrics of rules and dashboards, by name.
func families() map[string]metricnames.Metric {
	all := map[string]metricnames.Metric{}
	for _, f := range slices.Concat(metricnames.For(metricnames.Rules), metricnames.For(metricnames.Dashboards)) {
		all[f.Name] = f
	}
	return all
}

// asked reports whether an expression only tests whether a selector has a series, as the right operand of "and" or
// "unless". The labels of such a selector are not in the result.
func asked(s *parser.VectorSelector, path []parser.Node) bool {
	return slices.ContainsFunc(path, func(n parser.Node) bool {
		b, ok := n.(*parser.BinaryExpr)
		return ok && (b.Op == parser.LAND || b.Op == parser.LUNLESS) && b.RHS.PositionRange().Start <= s.PositionRange().Start
	})
}

func selectors(t *testing.T, name, expr string, visit func(s *parser.VectorSelector, path []parser.Node)) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(Expand(expr, window))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	parser.Inspect(parsed, func(n parser.Node, path []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			visit(s, path)
		}
		return nil
	})
}

// growing lists metrics that etcd declares as gauges but only increases. Like a
// counter, they have a meaningful rate.
var growing = []string{"etcd_disk_wal_write_bytes_total", "etcd_server_proposals_committed_total"}

// TestQueries checks that every query parses, uses known metrics and their labels, selects the chosen cluster and
// instance, and takes no rate of a gauge.
func TestQueries(t *testing.T) {
	known, unused := families(), map[string]bool{}
	for _, f := range metricnames.For(metricnames.Dashboards) {
		unused[f.Name] = true
	}
	records := mustAsker(t).records
	exprs(t, func(name, expr string) {
		reason := strings.HasSuffix(name, "its reason")
		selectors(t, name, expr, func(s *parser.VectorSelector, path []parser.Node) {
			has := map[string]string{}
			for _, m := range s.LabelMatchers {
				has[m.Name] = m.Value
			}
			if !reason && has["cluster"] != ".*" {
				t.Errorf("%s: %s does not choose a cluster", name, s)
			}
			if records[s.Name] != nil {
				return
			}
			f, ok := metricnames.Family(known, s.Name)
			if !ok {
				t.Errorf("%s: %s is neither a known metric nor a record", name, s.Name)
				return
			}
			delete(unused, f.Name)
			allowed := append([]string{model.MetricNameLabel, "job", "instance", "cluster"}, f.Labels...)
			for label := range has {
				if !slices.Contains(allowed, label) {
					t.Errorf("%s: %s has no label %s", name, f.Name, label)
				}
			}
			for _, n := range path {
				switch n := n.(type) {
				case *parser.Call:
					if f.Type == "gauge" && slices.Contains([]string{"rate", "increase"}, n.Func.Name) && !slices.Contains(growing, f.Name) {
						t.Errorf("%s takes the %s of the gauge %s", name, n.Func.Name, f.Name)
					}
				case *parser.AggregateExpr:
					for _, label := range n.Grouping {
						if asked(s, path) {
							continue
						}
						if !slices.Contains(append(allowed, "le"), label) {
							t.Errorf("%s: %s has no label %s to group by", name, f.Name, label)
						}
					}
				}
			}
		})
	})
	for name := range unused {
		t.Errorf("no dashboard reads %s", name)
	}
}

// TestInstances checks that panels about the dashboard's own components show only the chosen instance.
func TestInstances(t *testing.T) {
	// Panels that always show all instances.
	exempt := []string{"Alerts that fire", "Lease writes, at the server", "Duration of scrapes"}
	records := mustAsker(t).records
	each(t, func(_ Dashboard, name string, p Panel) {
		if slices.Contains(exempt, p.Title) {
			return
		}
		for _, x := range p.Queries {
			selectors(t, name, x.Expr, func(s *parser.VectorSelector, _ []parser.Node) {
				wants := records[s.Name] == nil || strings.HasPrefix(s.Name, "instance")
				has := slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "instance" })
				if has != wants {
					t.Errorf("%s %s: %s chooses an instance: %v", name, x.RefID, s, has)
				}
			})
		}
	})
}

// TestAsk checks that rewritten queries contain no variables and no recording rules.
func TestAsk(t *testing.T) {
	a := mustAsker(t)
	used := map[string]bool{}
	exprs(t, func(name, expr string) {
		selectors(t, name, expr, func(s *parser.VectorSelector, _ []parser.Node) { used[s.Name] = true })
		got, err := a.Ask(expr, window)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if strings.Contains(got, "$") {
			t.Errorf("%s: a variable is left in %s", name, got)
		}
		selectors(t, name, got, func(s *parser.VectorSelector, _ []parser.Node) {
			if a.records[s.Name] != nil {
				t.Errorf("%s: the record %s is left in %s", name, s.Name, got)
			}
		})
	})
	records := slices.Collect(maps.Keys(a.records))
	seen := slices.DeleteFunc(records, func(r string) bool { return !used[r] })
	if len(seen) < 20 {
		t.Errorf("the dashboards read %d records only: %q", len(seen), seen)
	}
}

// TestAskInPlace checks that the expression of a record replaces the record's name at its position.
func TestAskInPlace(t *testing.T) {
	a := &Asker{parser: parser.NewParser(parser.Options{}), records: map[string][]record{}}
	add := func(name, expr string, own map[string]string) {
		r := record{interval: 15 * time.Second}
		r.Record, r.Expr, r.Labels = name, expr, own
		a.records[name] = append(a.records[name], r)
	}
	add("job:up:sum", "sum by (job) (up)", nil)
	add("job:up:twice", "job:up:sum * 2", nil)
	add("class:slow", "slow_writes", map[string]string{"class": "write"})
	add("class:slow", "slow_reads", map[string]string{"class": "read"})
	add("loop", "loop + 1", nil)
	for _, c := range []struct{ expr, want string }{
		{`max(job:up:sum{cluster=~"$cluster"}) > 1`, `max((sum by (job) (up))) > 1`},
		{`job:up:twice`, `((sum by (job) (up)) * 2)`},
		{`min_over_time(job:up:sum[2m])`, `min_over_time((sum by (job) (up))[2m:15s])`},
		{`class:slow`, `(label_replace(slow_writes, "class", "write", "", "") or label_replace(slow_reads, "class", "read", "", ""))`},
		{`class:slow{class="read"} / job:up:sum`, `(label_replace(slow_reads, "class", "read", "", "")) / (sum by (job) (up))`},
		{`rate(x{instance=~"$instance"}[$__rate_interval])`, `rate(x{instance=~".*"}[20s])`},
		{`increase(x[$__range]) / $__interval`, `increase(x[10m]) / 5s`},
	} {
		got, err := a.Ask(c.expr, window)
		if err != nil || got != c.want {
			t.Errorf("%s\n got %s, %v\nwant %s", c.expr, got, err, c.want)
		}
	}
	for _, expr := range []string{`job:up:sum{job="etcd"}`, `job:up:sum offset 5m`, `class:slow{class="none"}`, `loop`, `sum(`} {
		if got, err := a.Ask(expr, window); err == nil {
			t.Errorf("%s became %s", expr, got)
		} else if !strings.Contains(err.Error(), fmt.Sprint(expr)[:3]) {
			t.Errorf("%s: the error does not say where: %v", expr, err)
		}
	}
}
