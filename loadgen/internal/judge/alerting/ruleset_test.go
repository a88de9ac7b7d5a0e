package alerting

import (
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/alerts"
)

func TestOnlyKeepsRecordsOfRecords(t *testing.T) {
	s := mustParse(t, `
groups:
  - name: g
    rules:
      - {record: 'a:b:c', expr: 'up{job="etcd"}'}
      - {record: 'd:e:f', expr: 'a:b:c + 1'}
      - {record: 'other', expr: 'up{job="loadgen"}'}
      - {alert: A, expr: 'd:e:f > 1 and on (job) process_open_fds{job=~"etcd|kube-apiserver"}'}
      - {alert: B, expr: 'other > 1'}
      - {alert: All, expr: 'count(ALERTS) > 1'}
`)
	names := func(s Ruleset) string {
		var all []string
		for _, g := range s {
			for _, r := range g.Rules {
				all = append(all, r.Record+r.Alert)
			}
		}
		return strings.Join(all, " ")
	}
	for alert, want := range map[string]string{"A": "a:b:c d:e:f A", "B": "other B", "All": "a:b:c d:e:f other A B All", "C": ""} {
		if got := names(s.Only(alert)); got != want {
			t.Errorf("%s needs %q, want %q", alert, got, want)
		}
	}
	var reads, jobs []string
	for _, m := range s.Reads("A") {
		reads = append(reads, MetricOf(m))
		jobs = append(jobs, JobsOf(m)...)
	}
	slices.Sort(reads)
	slices.Sort(jobs)
	if !slices.Equal(reads, []string{"process_open_fds", "up"}) || !slices.Equal(jobs, []string{"etcd", "etcd", "kube-apiserver"}) {
		t.Errorf("A reads %v of %v", reads, jobs)
	}
}

func TestParseNamesFileAndLine(t *testing.T) {
	_, err := Parse("mine.yaml", []byte("groups:\n  - name: g\n    rules:\n      - {alert: A, expr: 'sum(('}\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "mine.yaml:4:") {
		t.Errorf("a rule that does not parse: %v", err)
	}
}

// Every shipped alert reads metrics that package alerts knows, directly or through
// records.
func TestShipped(t *testing.T) {
	s, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range s.Alerts() {
		if len(s.Reads(name)) == 0 {
			t.Errorf("%s reads nothing", name)
		}
	}
	if len(s.Alerts()) != len(alerts.Table()) {
		t.Errorf("the ruleset has %d alerts, the table %d", len(s.Alerts()), len(alerts.Table()))
	}
}

// An error of a rule file is reported once, in one line, with the line of the file.
func TestRuleFileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"groups:\n  - name: g\n    rulez: []\n":                                                         `r.yaml:3: unknown field "rulez" (as Prometheus loads rules)`,
		"groups:\n  - name: g\n    rules:\n      - {alert: A, expr: up, for: soon}\n":                   `r.yaml:4: not a valid duration string: "soon" (as Prometheus loads rules)`,
		"groups:\n  - {name: g, interval: 1ms}\n":                                                       `r.yaml:2: groups.g.interval: group "g" is evaluated every 1ms; the minimum is 1s, the shortest time between two scrapes of a run (write interval: 15s)`,
		"groups:\n  - name: g\n    rules: [\n":                                                          `r.yaml:3: the file ends before a value (close an open { or [)`,
		"groups:\n  - name: g\n    interval: 1m\n   rules: []\n":                                        `r.yaml:4: expected an item of the list that begins on line 2 (begin each item with - and a space; indent all items equally, and all fields of an item equally)`,
		"groups:\n  - rules:\n      - {alert: A, expr: up}\n":                                           `r.yaml: `,
		"groups:\n  - name: g\n    rules:\n      - {alert: A, expr: up, record: b:c}\n":                 `r.yaml:4: group "g", rule 1, "A": only one of 'record' and 'alert' must be set (as Prometheus loads rules)`,
		"groups:\n  - name: g\n    rules:\n      - {alert: A, expr: 'sum(('}\n":                         `r.yaml:4: group "g", rule 1, "A": could not parse expression: `,
		"groups: []\n---\ngroups:\n  - name: g\n    rules: [{alert: A, expr: up, foo: 1}]\n":            `r.yaml:5: unknown field "foo" (as Prometheus loads rules)`,
		"groups: [{name: g,\n  rules: [{alert: A, expr: up},\n  {alert: B,\n  alert: C, expr: up}]}]\n": "r.yaml:4: mapping key \"alert\" already defined at line 3 (as Prometheus loads rules)",
		"kind: PrometheusRule\napiVersion: v1\nspec:\n  groups: []\n":                                   `r.yaml:2: apiVersion: "v1" has no kind PrometheusRule (write apiVersion: monitoring.coreos.com/v1)`,
		"kind: PrometheusRule\napiVersion: monitoring.coreos.com/v1\nspec:\n  group: []\n":              `r.yaml:4: spec.group: unknown field "group" (did you mean "groups"?)`,
		"kind: PrometheusRule\napiVersion: monitoring.coreos.com/v1\nmetadata: {name: x}\nspec:\n  groups:\n  - name: g\n    rules:\n    - {alert: A, expr: 'up =='}\n": `r.yaml:8: group "g", rule 1, "A": could not parse expression: `,
		"kind: PrometheusRule\napiVersion: monitoring.coreos.com/v1\nspec: {groups: [\n  {name: g, rules: [{alert: A,\n    exprs: up}]}]}\n":                            `r.yaml:5: unknown field "exprs" (as Prometheus loads rules)`,
	} {
		_, err := Parse("r.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "0:0") {
			t.Errorf("%s got  %v\nwant %s", text, err, want)
		}
	}
}
