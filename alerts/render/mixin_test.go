package render_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// The mixin has the form of other compiled mixins: three hidden fields hold the bundle's rules and dashboards.
func TestMixin(t *testing.T) {
	b := bundle(t, production())
	dir := filepath.Join(write(t, b), "mixin")
	out, err := deploytest.Run(t, dir, deploytest.Tool(t, deploytest.Jsonnet), "-e",
		`local m = (import 'mixin.libsonnet'); {dashboards: m.grafanaDashboards, alerts: m.prometheusAlerts, rules: m.prometheusRules, shown: m}`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var m struct {
		Dashboards    map[string]json.RawMessage
		Alerts, Rules json.RawMessage
		Shown         map[string]any
	}
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Shown) != 0 {
		t.Errorf("fields of the mixin that are not hidden: %v", m.Shown)
	}
	want := map[string]bool{} // alerts and records
	for name, text := range b.Files {
		switch {
		case strings.HasPrefix(name, "dashboards/"):
			sameJSON(t, name, string(m.Dashboards[strings.TrimPrefix(name, "dashboards/")]), string(text))
			delete(m.Dashboards, strings.TrimPrefix(name, "dashboards/"))
		case strings.HasPrefix(name, "rules/"):
			var file map[string]any
			if err := yaml.Unmarshal(text, &file); err != nil {
				t.Fatal(err)
			}
			for _, r := range rulesOf(file) {
				want[ruleText(t, r)] = true
			}
		}
	}
	if len(m.Dashboards) > 0 {
		t.Errorf("%d dashboards more than the bundle's", len(m.Dashboards))
	}
	for field, text := range map[string]json.RawMessage{"alert": m.Alerts, "record": m.Rules} {
		var file map[string]any
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, r := range rulesOf(file) {
			if r[field] == nil {
				t.Errorf("%v is not among those that have %q", r, field)
			}
			if !want[ruleText(t, r)] {
				t.Errorf("%v is not in the bundle", r)
			}
			delete(want, ruleText(t, r))
		}
	}
	if len(want) > 0 {
		t.Errorf("rules that the mixin has not: %v", want)
	}
}

// ruleText returns a rule as JSON text.
func ruleText(t *testing.T, rule map[string]any) string {
	t.Helper()
	text, err := json.Marshal(rule)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// promtool accepts the mixin's two files.
func TestPromtoolAcceptsTheMixin(t *testing.T) {
	dir := filepath.Join(write(t, bundle(t, production())), "mixin")
	out, err := deploytest.Run(t, dir, deploytest.Tool(t, deploytest.Promtool), "check", "rules", "--lint=all", "--lint-fatal", "prometheus_alerts.yaml", "prometheus_rules.yaml")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
