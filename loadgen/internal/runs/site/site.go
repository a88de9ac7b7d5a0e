// Package site makes the pages about a folder of runs: the list of all runs, the trends of their metrics, and charts
// that overlay several runs. Server serves the pages to browsers, and Publish writes them as files.
package site

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"html/template"
	"net/url"
	"path"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
)

//go:embed site.js
var script string

// links computes the addresses of the pages, relative to the directory of the list.
type links struct {
	static bool // whether the pages are files, without a server that filters the list
	alone  bool // whether the page is a single file without links to other pages
	// compare is the page of a static site that overlays all published runs, or "".
	compare string
}

// home returns the address of the list with the given query parameters, as pairs of names and values.
func (l links) home(pairs ...string) string {
	if l.static {
		return "index.html"
	}
	return "./" + query(pairs...)
}

// trends returns the address of the trends of a scenario and a variant.
func (l links) trends(scenario, variant string) string {
	if l.static {
		return trendFile(scenario, variant)
	}
	return "trend" + query("scenario", scenario, "variant", variant)
}

// run returns the address of the page of an entry, or "" if it has none.
func (l links) run(e *runs.Entry) string {
	switch {
	case l.alone:
		return ""
	case e.Page != "":
		return l.file(e, e.Page)
	case l.static:
		return ""
	}
	return l.file(e, "")
}

// file returns the address of a file of an entry.
func (l links) file(e *runs.Entry, name string) string {
	parts := strings.Split(e.Path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "run/" + path.Join(parts...) + "/" + name
}

// dir returns the directory of an entry, for commands. In a static site, it is relative to the directory of the list.
func (l links) dir(e *runs.Entry) string {
	if l.static {
		return path.Join("run", e.Path)
	}
	return e.Dir
}

// over returns the address of the page that overlays the given runs.
func (l links) over(all ...*runs.Entry) string {
	if l.static {
		return l.compare
	}
	var pairs []string
	for _, e := range all {
		pairs = append(pairs, "run", e.Path)
	}
	return "compare" + query(pairs...)
}

// query returns query parameters, without those that are empty.
func query(pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Add(pairs[i], pairs[i+1])
		}
	}
	if len(v) == 0 {
		return ""
	}
	return "?" + v.Encode()
}

// longestSlug is the maximum number of characters that a file name contains from the name of a scenario and variant.
const longestSlug = 100

// trendFile returns the name of the file with the trends of a scenario and a variant.
func trendFile(scenario, variant string) string {
	slug := chart.Slug(scenario + "-" + variant)
	if slug != scenario || variant != "" || len(slug) > longestSlug { // several names have the same slug
		slug = fmt.Sprintf("%s-%.3x", slug[:min(len(slug), longestSlug)], sha256.Sum256([]byte(scenario+"\x00"+variant)))
	}
	return "trend-" + slug + ".html"
}

// newDocument returns a page with the script that all pages share. In a static site, the script sends no requests.
func (l links) newDocument(title string) document.Document {
	return document.Document{Title: title + ": Stormglass", Heading: title, Script: template.JS(script), Live: !l.static}
}
