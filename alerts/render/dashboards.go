package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

type object = map[string]any

// dashboards renders the dashboards for Grafana. It removes panels and annotations that query only left-out jobs,
// dashboards without a remaining panel, and links to removed dashboards.
func (r *renderer) dashboards(files fs.FS) (rendered, error) {
	out := rendered{files: map[string]string{}}
	boards := map[string]object{}
	kept := map[string]bool{} // by uid
	err := sorted(files, "*.json", func(name string, text []byte) error {
		d := object{}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&d); err != nil {
			return err
		}
		queries, err := r.panels(d)
		if err != nil {
			return err
		}
		uid, _ := d["uid"].(string)
		if !queries || r.job(Generator) == "" && slices.Contains(generators(), uid) {
			out.leftOut = append(out.leftOut, "dashboard "+uid)
			return nil
		}
		kept[uid], boards[name] = true, d
		return nil
	})
	if err != nil {
		return out, err
	}
	for name, d := range boards {
		d["links"] = without(d["links"], func(link object) bool { return leadsNowhere(link, kept) })
		each(d["panels"], func(panel object) {
			panel["links"] = without(panel["links"], func(link object) bool { return leadsNowhere(link, kept) })
			if panel["links"] == nil {
				delete(panel, "links")
			}
		})
		if out.files[name], err = encode(d); err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

// generators returns the UIDs of the dashboards about a run. The bundle omits these dashboards if the installation does
// not scrape the load generator.
func generators() []string { return []string{"stormglass-loadgen", "stormglass-run"} }

// panels renders the queries of a dashboard, and reports whether at least one query remains.
func (r *renderer) panels(d object) (queries bool, err error) {
	note := func(e error) {
		if err == nil {
			err = e
		}
	}
	d["panels"] = without(d["panels"], func(panel object) bool {
		if panel["type"] == "row" {
			return false
		}
		alive, e := r.targets(panel)
		note(e)
		queries = queries || alive
		return !alive
	})
	d["panels"] = withoutEmptyRows(d["panels"])
	if annotations, ok := d["annotations"].(object); ok {
		annotations["list"] = without(annotations["list"], func(a object) bool {
			target, ok := a["target"].(object)
			if !ok {
				return false
			}
			alive, e := r.query(target, "expr")
			note(e)
			return !alive
		})
	}
	if variables, ok := d["templating"].(object); ok {
		each(variables["list"], func(v object) {
			if text, ok := v["definition"].(string); ok {
				v["definition"] = r.choices(text)
			}
			if q, ok := v["query"].(object); ok {
				if text, ok := q["query"].(string); ok {
					q["query"] = r.choices(text)
				}
			}
		})
	}
	return queries, err
}

// choices renders the query of a variable. Its result is the list of instances that the user can choose. If the query
// uses only left-out jobs, the rendered query uses all other jobs instead.
func (r *renderer) choices(query string) string {
	jobs := jobMatcher.FindStringSubmatch(query)
	if jobs != nil && !slices.ContainsFunc(strings.Split(jobs[3], "|"), r.scraped) {
		query = jobMatcher.ReplaceAllLiteralString(query, `job=~"`+strings.Join(slices.DeleteFunc(Jobs(), func(job string) bool { return !r.scraped(job) }), "|")+`"`)
	}
	return r.text(query)
}

// targets renders the queries of a panel, and removes queries that use only left-out jobs. alive reports whether a
// query remains.
func (r *renderer) targets(panel object) (alive bool, err error) {
	panel["targets"] = without(panel["targets"], func(target object) bool {
		ok, e := r.query(target, "expr")
		if e != nil && err == nil {
			err = fmt.Errorf("panel %q: %w", panel["title"], e)
		}
		alive = alive || ok
		return !ok
	})
	return alive, err
}

// query renders the PromQL expression in a field of an object. alive is false if no part of the expression remains
// after left-out jobs are removed.
func (r *renderer) query(of object, field string) (alive bool, err error) {
	text, _ := of[field].(string)
	parsed, err := r.parser.ParseExpr(masked(text))
	if err != nil {
		return false, fmt.Errorf("%s: %w", text, err)
	}
	if _, alive = r.prune(parsed); !alive {
		return false, nil
	}
	if text, err = r.selected(text, masked(text)); err != nil {
		return false, err
	}
	of[field] = r.text(text)
	return true, nil
}

// leadsNowhere reports whether a link leads to a dashboard that is not in kept.
func leadsNowhere(link object, kept map[string]bool) bool {
	uid, ok := dashboardOf(link)
	return ok && !kept[uid]
}

// dashboardOf returns the UID of the dashboard that a link leads to. ok is false if the link leads to another page.
func dashboardOf(link object) (uid string, ok bool) {
	url, _ := link["url"].(string)
	uid, ok = strings.CutPrefix(url, "/d/")
	uid, _, _ = strings.Cut(uid, "?")
	return uid, ok
}

func withoutEmptyRows(list any) any {
	all, _ := list.([]any)
	var left []any
	for i, p := range all {
		row := p.(object)["type"] == "row"
		if row && (i+1 == len(all) || all[i+1].(object)["type"] == "row") {
			continue
		}
		left = append(left, p)
	}
	return left
}

// without returns a list without the objects for which drop returns true. It returns nil for nil.
func without(list any, drop func(object) bool) any {
	all, ok := list.([]any)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(all, func(v any) bool {
		o, ok := v.(object)
		return ok && drop(o)
	})
}

func each(list any, f func(object)) {
	all, _ := list.([]any)
	for _, v := range all {
		if o, ok := v.(object); ok {
			f(o)
		}
	}
}

// encode returns the JSON of a dashboard, formatted like the built-in dashboards.
func encode(d object) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(d)
	return b.String(), err
}
