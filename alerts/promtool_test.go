package alerts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"go.yaml.in/yaml/v3"
)

// unitTests is a file in the format of "promtool test rules", limited to the parts that the tests here use. The tests
// query ALERTS for the states of alerts; promtool writes this series like a Prometheus server.
type unitTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	GroupEvalOrder     []string       `yaml:"group_eval_order"`
	Tests              []unitTest     `yaml:"tests"`

	file string
}

type unitTest struct {
	Name        string         `yaml:"name"`
	Interval    model.Duration `yaml:"interval"`
	InputSeries []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Exprs []struct {
		Expr     string         `yaml:"expr"`
		EvalTime model.Duration `yaml:"eval_time"`
		Samples  []struct {
			Labels string  `yaml:"labels"`
			Value  float64 `yaml:"value"`
		} `yaml:"exp_samples"`
	} `yaml:"promql_expr_test"`
}

func readUnitTests(t *testing.T) []unitTests {
	t.Helper()
	names, err := filepath.Glob("tests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []unitTests
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		u := unitTests{file: name}
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		decoder.KnownFields(true)
		if err := decoder.Decode(&u); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, u)
	}
	return all
}

// TestUnitTests runs tests/*.yaml, as "promtool test rules" does. It evaluates expressions with the engine and storage
// of Prometheus, and the states of alerts with evaluator. It does not use package rules of promtool, which depends on
// Alertmanager's API and a dozen other modules.
func TestUnitTests(t *testing.T) {
	loaded, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range readUnitTests(t) {
		rules := u.rules(t, loaded)
		for _, test := range u.Tests {
			t.Run(strings.TrimSuffix(filepath.Base(u.file), ".yaml")+"/"+test.Name, func(t *testing.T) {
				t.Parallel()
				test.run(t, rules, time.Duration(u.EvaluationInterval))
			})
		}
	}
}

// TestPromtoolVersion checks that promtool has the version of the Prometheus module in go.mod.
func TestPromtoolVersion(t *testing.T) {
	version := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), "github.com/prometheus/prometheus v")
		return strings.Fields(after)[0]
	}
	if ours, tools := version("../go.mod"), version("../tools/go.mod"); ours != tools {
		t.Errorf("tools has Prometheus v%s, but the harness has v%s", tools, ours)
	}
}

// rules returns the rules in the files that u names, with the groups in u's evaluation order.
func (u unitTests) rules(t *testing.T, loaded []Group) []rule {
	t.Helper()
	groups := map[string][]rule{}
	for _, named := range u.RuleFiles {
		for _, g := range loaded {
			if g.File != filepath.Base(named) {
				continue
			}
			for _, r := range g.Rules {
				groups[g.Name] = append(groups[g.Name], rule{Rule: r})
			}
		}
	}
	if len(groups) != len(u.GroupEvalOrder) {
		t.Fatalf("%s: %d groups in its rule files, %d in its order", u.file, len(groups), len(u.GroupEvalOrder))
	}
	var all []rule
	for _, name := range u.GroupEvalOrder {
		if groups[name] == nil {
			t.Fatalf("%s: the group %s is missing", u.file, name)
		}
		all = append(all, groups[name]...)
	}
	return all
}

func (u unitTest) run(t *testing.T, rules []rule, evaluation time.Duration) {
	script := fmt.Sprintf("load %v\n", u.Interval)
	for _, s := range u.InputSeries {
		script += fmt.Sprintf("  %s %s\n", s.Series, s.Values)
	}
	suite, err := promqltest.NewLazyLoader(script, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer suite.Close()
	suite.SubqueryInterval = evaluation
	var end time.Duration
	for _, e := range u.Exprs {
		end = max(end, time.Duration(e.EvalTime))
	}
	begin := time.Unix(0, 0).UTC()
	eval := newEvaluator(suite, rules)
	for at := time.Duration(0); at <= end; at += evaluation {
		suite.WithSamplesTill(begin.Add(at), func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			if err := eval.evaluate(begin.Add(at)); err != nil {
				t.Fatalf("at %v: %v", at, err)
			}
		})
	}
	for _, e := range u.Exprs {
		got, err := eval.query(e.Expr, begin.Add(time.Duration(e.EvalTime)))
		if err != nil {
			t.Fatalf("%s: %v", e.Expr, err)
		}
		var want promql.Vector
		for _, s := range e.Samples {
			l, err := parser.NewParser(parser.Options{}).ParseMetric(s.Labels)
			if err != nil {
				t.Fatalf("%s: %v", s.Labels, err)
			}
			want = append(want, promql.Sample{Metric: l, F: s.Value})
		}
		if g, w := lines(got), lines(want); g != w {
			t.Errorf("%s at %v:\n got %s\nwant %s", e.Expr, e.EvalTime, g, w)
		}
	}
}

// lines returns a vector as text, sorted by labels.
func lines(v promql.Vector) string {
	if len(v) == 0 {
		return "nothing"
	}
	sorted := slices.SortedFunc(slices.Values(v), func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) })
	var b strings.Builder
	for _, s := range sorted {
		fmt.Fprintf(&b, "\n\t%s %g", s.Metric, s.F)
	}
	return b.String()
}
