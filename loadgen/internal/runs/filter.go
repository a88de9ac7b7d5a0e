package runs

import (
	"maps"
	"slices"
	"strings"
)

// Filter selects entries. An empty field selects all.
type Filter struct {
	Scenario, Variant, Verdict, Version, Host, Label, Kind string
	// In is the path of a comparison or search whose runs are selected. If In is empty, runs of comparisons and searches are
	// left out, unless another field is set.
	In string
	// Text contains words that must all occur in the entry, in any order and case.
	Text string
}

// Facets returns the properties of an entry that a Filter compares, by name.
func (e *Entry) Facets() map[string]string {
	return map[string]string{
		"scenario": e.Scenario, "variant": e.Variant, "verdict": e.Verdict, "version": e.Version(), "host": e.Machine(), "kind": string(e.Kind),
	}
}

func (f Filter) facets() map[string]string {
	return map[string]string{
		"scenario": f.Scenario, "variant": f.Variant, "verdict": f.Verdict, "version": f.Version, "host": f.Host, "kind": f.Kind,
	}
}

// Empty reports whether no field of the filter is set.
func (f Filter) Empty() bool { return f == Filter{} }

// Matches reports whether the filter selects an entry.
func (f Filter) Matches(e *Entry) bool {
	if f.In != e.Parent && (f.In != "" || f.Empty()) {
		return false
	}
	have := e.Facets()
	for name, want := range f.facets() {
		if want != "" && have[name] != want {
			return false
		}
	}
	if f.Label != "" && !slices.Contains(e.LabelTexts(), f.Label) {
		return false
	}
	if f.Text == "" {
		return true
	}
	text := e.SearchText()
	for _, word := range strings.Fields(strings.ToLower(f.Text)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// SearchText returns all texts of an entry in which a search looks for words, in lower case.
func (e *Entry) SearchText() string {
	parts := []string{e.Path, e.ID, e.Version(), e.Machine(), e.Verdict, e.Scenario, e.Variant, e.State}
	parts = append(parts, e.LabelTexts()...)
	parts = append(parts, e.Settings...)
	return strings.ToLower(strings.Join(append(parts, e.Why...), "\n"))
}

// Select returns the entries that a filter selects.
func (f Filter) Select(all []*Entry) []*Entry {
	selected := []*Entry{} // in JSON, a list without entries is [], not null
	for _, e := range all {
		if f.Matches(e) {
			selected = append(selected, e)
		}
	}
	return selected
}

// Choices returns the sorted values that occur in entries, for each facet and for the labels.
func Choices(all []*Entry) map[string][]string {
	found := map[string]map[string]bool{"label": {}}
	for _, e := range all {
		for name, v := range e.Facets() {
			if found[name] == nil {
				found[name] = map[string]bool{}
			}
			if v != "" {
				found[name][v] = true
			}
		}
		for _, l := range e.LabelTexts() {
			found["label"][l] = true
		}
	}
	choices := map[string][]string{}
	for name, values := range found {
		choices[name] = slices.Sorted(maps.Keys(values))
	}
	return choices
}
