package site

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/report/document"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
)

// navigation returns the links at the top of each page.
func (l links) navigation(groups []group) []document.Link {
	if l.alone {
		return nil
	}
	nav := []document.Link{{Text: "All runs", To: l.home()}}
	if len(groups) > 0 {
		nav = append(nav, document.Link{Text: "Trends", To: l.trends(groups[0].scenario, groups[0].variant)})
	}
	if l.compare != "" {
		nav = append(nav, document.Link{Text: "Overlaid runs", To: l.compare})
	}
	return nav
}

// around returns the links at the top of the page of an entry: to the list, to the trends of its scenario, and to the
// previous and next run of the scenario. The links are relative to the directory of the entry.
func (l links) around(e *runs.Entry, groups []group) []document.Link {
	nav := []document.Link{{Text: "All runs", To: l.home()}}
	for _, g := range groups {
		at := slices.Index(g.all, e)
		if at < 0 {
			continue
		}
		nav = append(nav, document.Link{Text: "Trends of " + g.name(), To: l.trends(g.scenario, g.variant)})
		for step, text := range []string{"Run before", "Run after"} {
			if i := at + 2*step - 1; i >= 0 && i < len(g.all) && l.run(g.all[i]) != "" {
				nav = append(nav, document.Link{Text: text, To: l.run(g.all[i])})
			}
		}
	}
	for i := range nav {
		nav[i].To = up(e) + nav[i].To
	}
	return nav
}

// up returns the path from the directory of an entry to the list.
func up(e *runs.Entry) string { return strings.Repeat("../", strings.Count(e.Path, "/")+2) }

// maxPage is the maximum size of a run's file (its report or its results) that is copied to the site. The largest reports
// are several megabytes.
const maxPage = 64 << 20

// withLinks reads the page of an entry, and adds links at its top.
func (l links) withLinks(page io.Reader, e *runs.Entry, groups []group) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(page, maxPage+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxPage:
		return nil, fmt.Errorf("%s is larger than %d MiB", e.Page, maxPage>>20)
	}
	var nav strings.Builder
	nav.WriteString("<main>\n<nav aria-label=\"Pages\">")
	for _, link := range l.around(e, groups) {
		fmt.Fprintf(&nav, "<a href=\"%s\">%s</a> ", template.HTMLEscapeString(link.To), template.HTMLEscapeString(link.Text))
	}
	nav.WriteString("</nav>")
	return bytes.Replace(text, []byte("<main>"), []byte(nav.String()), 1), nil
}
