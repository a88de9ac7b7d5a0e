package render

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mixin returns the files of a monitoring mixin with the given rules and dashboards: mixin.libsonnet, for users who
// compose mixins in Jsonnet, and the compiled files, as other mixins provide them.
func mixin(rules, boards map[string]string) (map[string]string, error) {
	files := map[string]string{}
	var fields strings.Builder
	for _, name := range sortedNames(boards) {
		files["dashboards_out/"+name] = boards[name]
		fmt.Fprintf(&fields, "    '%[1]s': import 'dashboards_out/%[1]s',\n", name)
	}
	alerting, recording, err := divide(rules)
	if err != nil {
		return nil, err
	}
	for name, groups := range map[string][]*yaml.Node{"prometheus_alerts.yaml": alerting, "prometheus_rules.yaml": recording} {
		var text bytes.Buffer
		e := yaml.NewEncoder(&text)
		e.SetIndent(2)
		if err := e.Encode(map[string][]*yaml.Node{"groups": groups}); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = text.String()
	}
	files["mixin.libsonnet"] = `{
  grafanaDashboards+:: {
` + fields.String() + `  },
  prometheusAlerts+:: std.parseYaml(importstr 'prometheus_alerts.yaml'),
  prometheusRules+:: std.parseYaml(importstr 'prometheus_rules.yaml'),
}
`
	return files, nil
}

// divide returns the groups of alerts and the groups of recording rules of all files. It fails if a group has both.
func divide(rules map[string]string) (alerting, recording []*yaml.Node, err error) {
	for _, name := range sortedNames(rules) {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(rules[name]), &doc); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, g := range at(doc.Content[0], "groups").Content {
			records := 0
			list := at(g, "rules").Content
			for _, rule := range list {
				if value(rule, "record") != "" {
					records++
				}
			}
			switch records {
			case 0:
				alerting = append(alerting, g)
			case len(list):
				recording = append(recording, g)
			default:
				return nil, nil, fmt.Errorf("%s: the group %s has both alerts and recording rules, which a mixin must separate", name, value(g, "name"))
			}
		}
	}
	return alerting, recording, nil
}
