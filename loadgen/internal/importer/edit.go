package importer

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// edit changes the text of a template as inObject changes the objects that it renders. It reports false, and changes
// nothing, where the text is of a form in which it cannot: whether it could is found out by rendering with all values.
func edit(text string, all []map[string]any, inText func([]string, manifest) []string, inObject func(manifest)) (string, bool) {
	before, err := render(text, all[0])
	if err != nil {
		return text, false
	}
	var parts []string
	rest := before
	for _, part := range documentTexts(text) {
		lines := strings.Split(part, "\n")
		if len(rest) > 0 && hasFields(lines) {
			lines = inText(lines, rest[0])
			rest = rest[1:]
		}
		parts = append(parts, strings.Join(lines, "\n"))
	}
	changed := strings.Join(parts, "")
	for _, values := range all {
		before, err := render(text, values)
		if err != nil {
			return text, false
		}
		after, err := render(changed, values)
		if err != nil {
			return text, false
		}
		for _, object := range before {
			inObject(object)
		}
		if !reflect.DeepEqual(before, after) {
			return text, false
		}
	}
	return changed, true
}

var (
	separator  = regexp.MustCompile(`(?m)^---(\s.*)?\n`)
	actionLine = regexp.MustCompile(`^\s*\{\{.*\}\}\s*$`)
	keyLine    = regexp.MustCompile(`^( *)("[^"]*"|'[^']*'|[^\s#:'"{\[-][^:#]*):(\s.*)?$`)
)

// documentTexts are the documents of a text, each with the separator before it.
func documentTexts(text string) (parts []string) {
	from := 0
	for _, at := range separator.FindAllStringIndex(text, -1) {
		if at[0] > from {
			parts = append(parts, text[from:at[0]])
			from = at[0]
		}
	}
	return append(parts, text[from:])
}

func hasFields(lines []string) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return keyLine.MatchString(l) })
}

// plain reports whether a line has nothing of the document: blank, a comment, or an action alone.
func plain(line string) bool {
	t := strings.TrimSpace(line)
	return t == "" || strings.HasPrefix(t, "#") || strings.HasPrefix(t, "---") || actionLine.MatchString(line)
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// find is the line of a key below another, whose children end before end; -1: there is none. childIndent is that of
// the children, -1 if there are none.
func find(lines []string, from, end, parentIndent int, key string) (at, childIndent int) {
	childIndent = -1
	for i := from; i < end; i++ {
		if plain(lines[i]) {
			continue
		}
		indent := indentOf(lines[i])
		if childIndent < 0 {
			if indent <= parentIndent {
				return -1, -1
			}
			childIndent = indent
		}
		if m := keyLine.FindStringSubmatch(lines[i]); indent == childIndent && m != nil && strings.Trim(m[2], `"'`) == key {
			return i, childIndent
		}
	}
	return -1, childIndent
}

// blockEnd is the line after the children of the key at a line.
func blockEnd(lines []string, at int) int {
	end := at + 1
	for i := at + 1; i < len(lines); i++ {
		if plain(lines[i]) {
			continue
		}
		if indentOf(lines[i]) <= indentOf(lines[at]) {
			break
		}
		end = i + 1
	}
	return end
}

// addEntries puts entries below a path of a document, which is made as far as it is missing.
func addEntries(lines, path []string, entries map[string]string) []string {
	from, end, indent := 0, len(lines), -1
	for depth, key := range path {
		at, child := find(lines, from, end, indent, key)
		if at < 0 {
			if child < 0 {
				child = indent + 2
			}
			if depth == 0 {
				return lines
			}
			return slices.Insert(slices.Clone(lines), from, missing(path[depth:], entries, child)...)
		}
		from, end, indent = at+1, blockEnd(lines, at), child
	}
	_, child := find(lines, from, end, indent, "")
	if child < 0 {
		child = indent + 2
	}
	return slices.Insert(slices.Clone(lines), from, missing(nil, entries, child)...)
}

// missing are the lines of entries below the rest of a path.
func missing(path []string, entries map[string]string, indent int) (lines []string) {
	for _, key := range path {
		lines = append(lines, strings.Repeat(" ", indent)+key+":")
		indent += 2
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		lines = append(lines, strings.Repeat(" ", indent)+key+`: "`+entries[key]+`"`)
	}
	return lines
}

// dropEntries takes the entries of these names out below a path, and the path's last key if nothing is left.
func dropEntries(lines, path, names []string) []string {
	from, end, indent := 0, len(lines), -1
	last := -1
	for _, key := range path {
		at, child := find(lines, from, end, indent, key)
		if at < 0 {
			return lines
		}
		last, from, end, indent = at, at+1, blockEnd(lines, at), child
	}
	var kept []string
	left := false
	for _, line := range lines[from:end] {
		m := keyLine.FindStringSubmatch(line)
		if m != nil && slices.Contains(names, strings.Trim(m[2], `"'`)) {
			continue
		}
		left = left || !plain(line)
		kept = append(kept, line)
	}
	if !left {
		from = last
	}
	return slices.Concat(lines[:from], kept, lines[end:])
}

// addLabels puts labels into every object of a template, and into the templates of pods.
func addLabels(text string, values []map[string]any, labels map[string]string) (string, bool) {
	paths := func(m manifest) [][]string {
		all := [][]string{{"metadata", "labels"}}
		switch m.kind() {
		case "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet":
			all = append(all, []string{"spec", "template", "metadata", "labels"})
		}
		return all
	}
	return edit(text, values, func(lines []string, m manifest) []string {
		for _, path := range paths(m) {
			lines = addEntries(lines, path, without(labels, m.at(path...)))
		}
		return lines
	}, func(m manifest) {
		for _, path := range paths(m) {
			at := m
			for _, key := range path {
				if _, ok := asMap(at[key]); !ok {
					at[key] = map[string]any{}
				}
				at = at.at(key)
			}
			for key, value := range labels {
				if _, own := at[key]; !own {
					at[key] = value
				}
			}
		}
	})
}

// without are the entries whose keys a mapping does not have.
func without(entries map[string]string, m manifest) map[string]string {
	all := maps.Clone(entries)
	maps.DeleteFunc(all, func(key, _ string) bool { _, own := m[key]; return own })
	return all
}

// dropNodeSelectors takes the selectors of nodes by these labels out of a template.
func dropNodeSelectors(text string, values []map[string]any, names []string) (string, bool) {
	return edit(text, values, func(lines []string, m manifest) []string {
		at := podSpec(m.kind())
		if at == nil {
			return lines
		}
		return dropEntries(lines, append(at, "nodeSelector"), names)
	}, func(m manifest) {
		at := podSpec(m.kind())
		if at == nil {
			return
		}
		spec := m.at(at...)
		selector := spec.at("nodeSelector")
		maps.DeleteFunc(selector, func(key string, _ any) bool { return slices.Contains(names, key) })
		if selector != nil && len(selector) == 0 {
			delete(spec, "nodeSelector")
		}
	})
}

// nodeLabels are labels of all simulated nodes.
func nodeLabels() []string {
	return []string{"kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch"}
}

// foreignSelectors are the labels by which pods of objects select nodes and that simulated nodes do not have.
func foreignSelectors(all []manifest) (names []string) {
	for _, m := range all {
		at := podSpec(m.kind())
		if at == nil {
			continue
		}
		for key := range m.at(append(at, "nodeSelector")...) {
			if !slices.Contains(nodeLabels(), key) && !slices.Contains(names, key) {
				names = append(names, key)
			}
		}
	}
	slices.Sort(names)
	return names
}
