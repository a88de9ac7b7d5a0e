package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/dashboards"
)

// items is a JSON list. Helm renders each element only if its condition holds.
type items struct {
	list []any
	when []condition
}

// board is a dashboard, with the conditions under which it and its parts remain. The conditions of panels and
// annotations are in the order of the dashboard.
type board struct {
	file                string
	object              object
	when                condition
	panels, annotations []condition
	targets             [][]condition // by panel
}

// dashboards returns a template of a ConfigMap for each dashboard.
func (c *chart) dashboards() (map[string]string, error) {
	var all []*board
	kept := map[string]condition{} // by uid
	err := sorted(dashboards.JSON(), "*.json", func(name string, text []byte) error {
		b, err := c.board(name, text)
		if err != nil {
			return err
		}
		all = append(all, b)
		kept[uidOf(b.object)] = b.when
		return nil
	})
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, b := range all {
		text, err := b.template(kept)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.file, err)
		}
		files[strings.TrimSuffix(b.file, ".json")+".yaml"] = text
	}
	return files, nil
}

func uidOf(d object) string {
	uid, _ := d["uid"].(string)
	return uid
}

// board reads a dashboard, determines the conditions of its queries, and puts placeholders into the queries.
func (c *chart) board(file string, text []byte) (*board, error) {
	b := &board{file: file, object: object{}}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&b.object); err != nil {
		return nil, err
	}
	row := -1 // index of the last row heading
	for i, p := range objects(b.object["panels"]) {
		var when condition
		var targets []condition
		if p["type"] == "row" {
			row = i
		} else {
			for _, target := range objects(p["targets"]) {
				one, err := c.query(target)
				if err != nil {
					return nil, fmt.Errorf("panel %q: %w", p["title"], err)
				}
				targets, when = append(targets, one), when.or(one)
			}
			b.when = b.when.or(when)
			if row >= 0 {
				b.panels[row] = b.panels[row].or(when)
			}
		}
		b.panels, b.targets = append(b.panels, when), append(b.targets, targets)
	}
	if annotations, ok := b.object["annotations"].(object); ok {
		for _, a := range objects(annotations["list"]) {
			when := always()
			if target, ok := a["target"].(object); ok {
				var err error
				if when, err = c.query(target); err != nil {
					return nil, err
				}
			}
			b.annotations = append(b.annotations, when)
		}
	}
	if slices.Contains(generators(), uidOf(b.object)) {
		b.when = b.when.and(condition{{Generator}})
	}
	_, err := c.full.panels(b.object)
	return b, err
}

// query returns the condition under which a part of target's query remains.
func (c *chart) query(target object) (condition, error) {
	expr, _ := target["expr"].(string)
	when, _, err := c.needs(expr)
	return when, err
}

// template returns the template of the dashboard's ConfigMap. kept holds the conditions of all dashboards by UID.
func (b *board) template(kept map[string]condition) (string, error) {
	links := func(list any) items {
		var all items
		for _, link := range objects(list) {
			when := always()
			if uid, ok := dashboardOf(link); ok {
				when = kept[uid]
			}
			all.list, all.when = append(all.list, link), append(all.when, when)
		}
		return all
	}
	b.object["links"] = links(b.object["links"])
	panels := objects(b.object["panels"])
	if len(panels) != len(b.panels) {
		return "", fmt.Errorf("the dashboard has %d panels, but the number of conditions is %d", len(panels), len(b.panels))
	}
	shown := items{when: b.panels}
	for i, p := range panels {
		if p["links"] != nil {
			p["links"] = links(p["links"])
		}
		if list, ok := p["targets"].([]any); ok {
			p["targets"] = items{list, b.targets[i]}
		}
		shown.list = append(shown.list, p)
	}
	b.object["panels"] = shown
	if annotations, ok := b.object["annotations"].(object); ok {
		list, _ := annotations["list"].([]any)
		annotations["list"] = items{list, b.annotations}
	}
	if variables, ok := b.object["templating"].(object); ok {
		for _, v := range objects(variables["list"]) {
			if v["definition"] != nil {
				v["definition"] = choices(v["definition"])
			}
			if q, ok := v["query"].(object); ok {
				q["query"] = choices(q["query"])
			}
		}
	}
	w := jsonTemplate{}
	if err := w.value(b.object, "    "); err != nil {
		return "", err
	}
	name := strings.TrimSuffix(b.file, ".json")
	return template("dashboards/json/"+b.file, ".Values.dashboards.enabled", b.when, "apiVersion: v1\nkind: ConfigMap\n"+
		metadata(strings.TrimPrefix(name, "stormglass-")+"-dashboard", ".Values.dashboards")+
		"data:\n  "+b.file+": |\n    "+w.String()+"\n"), nil
}

// either is a string in a template. If the condition `when` holds, Helm renders the field `text`, otherwise the field
// `not`.
type either struct {
	when      condition
	text, not string
}

// choices returns the query of a variable as a template. Helm renders the template to the text that renderer.choices returns.
func choices(query any) any {
	text, _ := query.(string)
	matcher := jobMatcher.FindStringSubmatch(text)
	if matcher == nil {
		return query
	}
	var sets [][]string
	for _, name := range strings.Split(matcher[3], "|") {
		sets = append(sets, []string{strings.TrimPrefix(name, jobPlaceholder)})
	}
	all := jobPlaceholder + strings.Join(Jobs(), "|"+jobPlaceholder)
	return either{smallest(sets), text, jobMatcher.ReplaceAllLiteralString(text, `job=~"`+all+`"`)}
}

// objects returns the elements of a list that are objects.
func objects(list any) (all []object) {
	each(list, func(o object) { all = append(all, o) })
	return all
}

// jsonTemplate writes JSON as a Helm template.
type jsonTemplate struct {
	strings.Builder
	lists int // number of lists so far that need a comma variable
}

// value writes a JSON value at the current position of the line. indent is the indentation of all further lines of the value.
func (w *jsonTemplate) value(v any, indent string) error {
	switch v := v.(type) {
	case object:
		return w.fields(v, indent)
	case items:
		return w.items(v, indent)
	case either:
		w.WriteString("{{ if " + v.when.helm() + " }}")
		if err := w.value(v.text, indent); err != nil {
			return err
		}
		w.WriteString("{{ else }}")
		if err := w.value(v.not, indent); err != nil {
			return err
		}
		w.WriteString("{{ end }}")
		return nil
	case []any:
		all := items{list: v}
		for range v {
			all.when = append(all.when, always())
		}
		return w.items(all, indent)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	w.WriteString(actions(strings.TrimSpace(b.String())))
	return nil
}

func (w *jsonTemplate) fields(o object, indent string) error {
	if len(o) == 0 {
		w.WriteString("{}")
		return nil
	}
	w.WriteString("{")
	for i, name := range slices.Sorted(maps.Keys(o)) {
		if i > 0 {
			w.WriteString(",")
		}
		fmt.Fprintf(w, "\n%s  %q: ", indent, name)
		if err := w.value(o[name], indent+"  "); err != nil {
			return err
		}
	}
	w.WriteString("\n" + indent + "}")
	return nil
}

// items writes a list. If elements have conditions, the comma before each element is in a template variable, which is
// empty until the first element is rendered.
func (w *jsonTemplate) items(all items, indent string) error {
	if len(all.list) == 0 {
		w.WriteString("[]")
		return nil
	}
	if len(all.when) != len(all.list) {
		return fmt.Errorf("a list has %d elements but %d conditions: each element needs one condition", len(all.list), len(all.when))
	}
	comma := ""
	if slices.ContainsFunc(all.when, func(c condition) bool { return !c.isAlways() }) {
		w.lists++
		comma = fmt.Sprintf("$comma%d", w.lists)
	}
	w.WriteString("[")
	if comma != "" {
		fmt.Fprintf(w, "\n{{- %s := \"\" }}", comma)
	}
	for i, v := range all.list {
		when := all.when[i]
		switch {
		case comma == "" && i > 0:
			w.WriteString(",")
		case comma != "" && !when.isAlways():
			fmt.Fprintf(w, "\n{{- if %s }}", when.helm())
		}
		if comma != "" {
			fmt.Fprintf(w, "{{ %s }}{{ %[1]s = \",\" }}", comma)
		}
		w.WriteString("\n" + indent + "  ")
		if err := w.value(v, indent+"  "); err != nil {
			return err
		}
		if comma != "" && !when.isAlways() {
			w.WriteString("\n{{- end }}")
		}
	}
	w.WriteString("\n" + indent + "]")
	return nil
}
