package render

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/alerts"
)

// clusterOfAlert matches the cluster label in the template of an annotation.
var clusterOfAlert = regexp.MustCompile(`\$labels\.cluster\b`)

// ruleFiles parses rule files, with their comments, and returns them by name.
func ruleFiles(files fs.FS) (map[string]*yaml.Node, error) {
	docs := map[string]*yaml.Node{}
	err := sorted(files, "*.yaml", func(name string, text []byte) error {
		var doc yaml.Node
		if err := yaml.Unmarshal(text, &doc); err != nil {
			return err
		}
		docs[name] = &doc
		return nil
	})
	return docs, err
}

// settle fills r.gone with the recorded series for which no rule remains in the bundle. A rule may read a series that a
// later file defines, so settle repeats the search until it finds no more series.
func (r *renderer) settle(docs map[string]*yaml.Node) error {
	for before := -1; before != len(r.gone); {
		before = len(r.gone)
		for name, doc := range docs {
			if err := r.findGone(doc); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func (r *renderer) rules(files fs.FS) (rendered, error) {
	out := rendered{files: map[string]string{}}
	docs, err := ruleFiles(files)
	if err == nil {
		err = r.settle(docs)
	}
	if err != nil {
		return out, err
	}
	for name, doc := range docs {
		dropped, err := r.ruleFile(doc)
		if err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
		out.leftOut = append(out.leftOut, dropped...)
		if len(at(doc.Content[0], "groups").Content) == 0 {
			continue
		}
		var text bytes.Buffer
		e := yaml.NewEncoder(&text)
		e.SetIndent(2)
		if err := e.Encode(doc); err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
		out.files[name] = text.String()
	}
	slices.Sort(out.leftOut)
	return out, nil
}

// findGone adds to r.gone the recorded series of a file for which no rule remains. Several rules may record one series.
func (r *renderer) findGone(doc *yaml.Node) error {
	alive := map[string]bool{}
	for _, g := range at(doc.Content[0], "groups").Content {
		for _, rule := range at(g, "rules").Content {
			record := value(rule, "record")
			if record == "" {
				continue
			}
			_, ok, err := r.expr(value(rule, "expr"))
			if err != nil {
				return fmt.Errorf("%s: %w", record, err)
			}
			alive[record] = alive[record] || ok
		}
	}
	for record, ok := range alive {
		if !ok {
			r.gone[record] = true
		}
	}
	return nil
}

// ruleFile renders the rules of a file in place, and returns the alerts that it removed.
func (r *renderer) ruleFile(doc *yaml.Node) (dropped []string, err error) {
	groups := at(doc.Content[0], "groups")
	for _, g := range groups.Content {
		rules := at(g, "rules")
		rules.Content = slices.DeleteFunc(rules.Content, func(rule *yaml.Node) bool {
			keep, ruleErr := r.rule(rule)
			if ruleErr != nil && err == nil {
				err = fmt.Errorf("%s%s: %w", value(rule, "record"), value(rule, "alert"), ruleErr)
			}
			if alert := value(rule, "alert"); !keep && alert != "" {
				dropped = append(dropped, alert)
			}
			return !keep
		})
	}
	groups.Content = slices.DeleteFunc(groups.Content, func(g *yaml.Node) bool { return len(at(g, "rules").Content) == 0 })
	return dropped, err
}

func (r *renderer) rule(rule *yaml.Node) (keep bool, err error) {
	expr := at(rule, "expr")
	text, keep, err := r.expr(expr.Value)
	if err != nil || !keep {
		return false, err
	}
	if text != expr.Value {
		expr.Value = text
		if strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
			expr.Style = yaml.LiteralStyle
		} else {
			expr.Value, expr.Style = strings.TrimSuffix(text, "\n"), 0
		}
	}
	annotations := at(rule, "annotations")
	if annotations == nil {
		return true, nil
	}
	for i := 1; i < len(annotations.Content); i += 2 {
		text := annotations.Content[i]
		if r.ClusterLabel != clusterLabel {
			text.Value = clusterOfAlert.ReplaceAllString(text.Value, "$$labels."+r.ClusterLabel)
		}
		if annotations.Content[i-1].Value == "runbook_url" {
			text.Value = strings.TrimSuffix(r.RunbookBase, "/") + strings.TrimPrefix(text.Value, alerts.Pages)
		}
	}
	return true, nil
}

// at returns the value of a key of a mapping, or nil if the key is missing.
func at(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func value(mapping *yaml.Node, key string) string {
	if n := at(mapping, key); n != nil {
		return n.Value
	}
	return ""
}
