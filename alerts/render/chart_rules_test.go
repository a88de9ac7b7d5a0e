package render

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/alerts"
)

// rules returns a template of a PrometheusRule for each rule file.
func (c *chart) rules() (map[string]string, error) {
	docs, err := ruleFiles(alerts.Files())
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, doc := range docs {
		var groups strings.Builder
		var when condition
		for _, g := range at(doc.Content[0], "groups").Content {
			some, text, err := c.group(g)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			groups.WriteString(guarded(some, text))
			when = when.or(some)
		}
		part := strings.ReplaceAll(strings.TrimSuffix(name, ".yaml"), "_", "-")
		files[part+".yaml"] = template(path.Join("alerts", name), ".Values.rules.enabled", when,
			"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n"+metadata(part, ".Values.rules")+"spec:\n  groups:\n"+groups.String())
	}
	return files, nil
}

// group returns the template of a rule group, for use below "  groups:", and the condition under which at least one
// rule of the group remains.
func (c *chart) group(g *yaml.Node) (when condition, text string, err error) {
	type rule struct {
		when condition
		text string
	}
	var rules []rule
	for _, node := range at(g, "rules").Content {
		name := value(node, "record") + value(node, "alert")
		r := rule{}
		if r.when, r.text, err = c.rule(node); err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		rules = append(rules, r)
		when = when.or(r.when)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "    - name: %s\n      interval: %s\n      rules:\n", value(g, "name"), value(g, "interval"))
	for _, r := range rules {
		if r.when.helm() == when.helm() { // the group's condition already includes the rule's condition
			b.WriteString(r.text)
			continue
		}
		b.WriteString(guarded(r.when, r.text))
	}
	return when, b.String(), nil
}

// guarded returns a template that renders the lines of text if the condition holds.
func guarded(when condition, text string) string {
	if when.isAlways() {
		return text
	}
	return "{{- if " + when.helm() + " }}\n" + text + "{{- end }}\n"
}

// alternativesPlaceholder is replaced with a part of a template, for an expression that depends on the scraped jobs.
const alternativesPlaceholder = "STORMGLASS_ALTERNATIVES"

// rule returns the template of a rule, an item for use below "      rules:", and the condition under which the rule remains.
func (c *chart) rule(node *yaml.Node) (when condition, text string, err error) {
	expr := strings.TrimSpace(value(node, "expr"))
	when, forms, err := c.needs(expr)
	if err != nil {
		return nil, "", err
	}
	chain := ""
	if len(forms) > 1 {
		if chain, err = c.chain(expr); err != nil {
			return nil, "", err
		}
	}
	if _, err := c.full.rule(node); err != nil {
		return nil, "", err
	}
	e := at(node, "expr")
	e.Value, e.Style = strings.TrimSpace(e.Value), yaml.LiteralStyle
	if chain != "" {
		e.Value = alternativesPlaceholder
	}
	var encoded bytes.Buffer
	encoder := yaml.NewEncoder(&encoded)
	encoder.SetIndent(2)
	if err := encoder.Encode([]*yaml.Node{node}); err != nil {
		return nil, "", err
	}
	var b strings.Builder
	for line := range strings.Lines(actions(encoded.String())) {
		switch {
		case strings.TrimSpace(line) == alternativesPlaceholder:
			b.WriteString(chain)
		case line == "\n":
			b.WriteString(line)
		default:
			b.WriteString("        " + line)
		}
	}
	return when, b.String(), nil
}

// chain returns the template of a chain of "or" whose operands select series of different components.
func (c *chart) chain(expr string) (string, error) {
	parsed, err := c.full.parser.ParseExpr(expr)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("{{- $or := \"\" }}\n")
	for _, operand := range alternatives(parsed) {
		when, forms, err := c.needs(operand.String())
		if err != nil {
			return "", err
		}
		if len(forms) > 1 || !selects(operand) {
			return "", fmt.Errorf("%s changes if some components are left out: write it as a chain of \"or\" with one operand for each component", operand)
		}
		b.WriteString(guarded(when, "            {{ $or }}"+actions(c.full.text(operand.String()))+"{{ $or = \"or \" }}\n"))
	}
	return b.String(), nil
}
