package importer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/template"
)

// addLabels adds labels to each object of a template and to its pod template. labels returns the labels for the
// document with a given index; their values may be template expressions. If inherit is set, pod templates also get the
// labels of their object. If it fails, addLabels returns the text unchanged and false.
func addLabels(limits *template.Bounds, text string, values []map[string]any, inherit bool, labels func(document int) map[string]string) (string, bool) {
	inherited := map[int][]string{} // keys, by document
	return edit(limits, text, values, func(lines []string, m manifest, document int) []string {
		entries := map[string]string{}
		for key, value := range labels(document) {
			entries[key] = strconv.Quote(value)
		}
		for n, path := range labelPaths(m) {
			if n > 0 && inherit {
				own := ownLabelTexts(lines, m)
				maps.Copy(own, entries)
				entries = own
				inherited[document] = slices.Collect(maps.Keys(own))
			}
			if lack := without(entries, m.at(path...)); len(lack) > 0 {
				lines = addEntries(lines, path, lack)
			}
		}
		return lines
	}, func(m manifest, document int, values map[string]any) {
		for n, path := range labelPaths(m) {
			at := m
			for _, key := range path {
				if at.at(key) == nil {
					at[key] = map[string]any{}
				}
				at = at.at(key)
			}
			for key, value := range labels(document) {
				if _, own := at[key]; !own {
					at[key] = filled(value, values)
				}
			}
			for key, value := range m.at("metadata", "labels") {
				if _, own := at[key]; n > 0 && !own && slices.Contains(inherited[document], key) {
					at[key] = value
				}
			}
		}
	})
}

// ownLabelTexts returns the labels in an object's metadata, with their values as the template writes them. It skips
// labels that share a line with others.
func ownLabelTexts(lines []string, m manifest) map[string]string {
	own := map[string]string{}
	from, end, indent := 0, len(lines), -1
	for _, key := range []string{"metadata", "labels"} {
		at, child := find(lines, from, end, indent, key)
		if at < 0 {
			return own
		}
		from, end, indent = at+1, blockEnd(lines, at), child
	}
	for _, line := range lines[from:end] {
		key := keyLine.FindStringSubmatch(line)
		if key == nil {
			continue
		}
		name := strings.Trim(key[2], `"'`)
		if _, is := m.at("metadata", "labels")[name]; is {
			own[name] = strings.TrimSpace(key[3])
		}
	}
	return own
}

// labelPaths returns the path of the object's labels and, for controllers of pods, the path of the labels in the pod
// template.
func labelPaths(m manifest) [][]string {
	all := [][]string{{"metadata", "labels"}}
	switch m.kind() {
	case "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet":
		all = append(all, []string{"spec", "template", "metadata", "labels"})
	}
	return all
}

// filled renders text, a label value that may be a template expression. If that fails, it returns text unchanged.
func filled(text string, values map[string]any) string {
	if t, err := template.ParseValue(text); err == nil {
		if v, err := t.Value(values, 1, 1); err == nil {
			return fmt.Sprint(v)
		}
	}
	return text
}

// without returns the entries whose keys are not in m.
func without(entries map[string]string, m manifest) map[string]string {
	all := maps.Clone(entries)
	maps.DeleteFunc(all, func(key, _ string) bool { _, own := m[key]; return own })
	return all
}
