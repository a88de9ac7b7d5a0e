package importer

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/template"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// edit changes a template with inText, which edits the lines of one document. To verify this, edit renders the changed
// template with each of the values in all, and compares the result with the original objects as changed by inObject. If
// they differ, edit returns the original text and false.
func edit(limits *template.Bounds, text string, all []map[string]any, inText func(lines []string, m manifest, document int) []string,
	inObject func(m manifest, document int, values map[string]any)) (string, bool) {
	before, err := render(limits, text, all[0])
	if err != nil {
		return text, false
	}
	var parts []string
	document := 0
	for _, part := range documentTexts(text) {
		lines := strings.Split(part, "\n")
		if document < len(before) && hasFields(lines) {
			lines = inText(lines, before[document], document)
			document++
		}
		parts = append(parts, strings.Join(lines, "\n"))
	}
	changed := strings.Join(parts, "")
	for _, values := range all {
		before, err := render(limits, text, values)
		if err != nil {
			return text, false
		}
		after, err := render(limits, changed, values)
		if err != nil {
			return text, false
		}
		for i, object := range before {
			inObject(object, i, values)
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

// documentTexts splits a text into its YAML documents. Each part includes the separator line before its document.
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

// plain reports whether a line contributes no content: a blank line, a comment, a separator or a template action.
func plain(line string) bool {
	t := strings.TrimSpace(line)
	return t == "" || strings.HasPrefix(t, "#") || strings.HasPrefix(t, "---") || actionLine.MatchString(line)
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// find searches the block lines[from:end] for a key. parentIndent is the indentation of the block's parent key. at is
// the index of the line with the key, or -1. childIndent is the indentation of the keys in the block, or -1 if the
// block is empty.
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

// dropUnknown removes the fields that API servers do not know from a template, as API servers remove them from objects. It
// returns the names of these fields, and false if it cannot remove all of them.
func dropUnknown(limits *template.Bounds, text string, values []map[string]any, objects []manifest) (changed string, names []string, ok bool) {
	for _, m := range objects {
		for _, path := range scenario.UnknownFields(m) {
			names = append(names, strings.Join(path, "."))
		}
	}
	if len(names) == 0 {
		return text, nil, true
	}
	changed, ok = edit(limits, text, values, func(lines []string, m manifest, _ int) []string {
		for _, path := range scenario.UnknownFields(m) {
			from, end, indent := 0, len(lines), -1
			for depth, key := range path {
				at, child := find(lines, from, end, indent, key)
				if at < 0 {
					break
				}
				from, end, indent = at+1, blockEnd(lines, at), child
				if depth == len(path)-1 {
					lines = slices.Delete(slices.Clone(lines), at, end)
				}
			}
		}
		return lines
	}, func(m manifest, _ int, _ map[string]any) {
		for _, path := range scenario.UnknownFields(m) {
			delete(m.at(path[:len(path)-1]...), path[len(path)-1])
		}
	})
	return changed, names, ok && !strings.Contains(strings.Join(names, ""), "[")
}

// blockEnd returns the index of the line after the block below a key. at is the index of the line with the key.
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

// addEntries adds entries to the mapping at a path of a document. It creates a missing mapping. The values of entries
// are YAML text.
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
		if flow := flowValue.FindString(lines[at]); flow != "" {
			n := strings.LastIndexByte(flow, '{') + 1
			changed := lines[at][:n] + intoFlow(lines[at][n:], path[depth+1:], entries)
			return slices.Replace(slices.Clone(lines), at, at+1, changed)
		}
		from, end, indent = at+1, blockEnd(lines, at), child
	}
	_, child := find(lines, from, end, indent, "")
	if child < 0 {
		child = indent + 2
	}
	return slices.Insert(slices.Clone(lines), from, missing(nil, entries, child)...)
}

// flowValue matches a key whose value is a flow mapping on the same line.
var flowValue = regexp.MustCompile(`^ *[^\s#:'"{\[-][^:#]*:\s+\{([^{]|$)`)

// intoFlow adds entries to the mapping at a path inside a flow mapping. text is what follows the opening brace on the
// line.
func intoFlow(text string, path []string, entries map[string]string) string {
	text = strings.TrimLeft(text, " ")
	var b strings.Builder
	for i, key := range path {
		inner := regexp.MustCompile(`(^|[,{]\s*)` + regexp.QuoteMeta(key) + `:\s*\{([^{]|$)`).FindStringIndex(text)
		if inner == nil {
			for _, missing := range path[i:] {
				b.WriteString(missing + ": {")
			}
			b.WriteString(inFlow(entries))
			return b.String() + strings.Repeat("}", len(path)-i) + ", " + text
		}
		end := strings.LastIndexByte(text[:inner[1]], '{') + 1
		b.WriteString(text[:end])
		text = text[end:]
	}
	return b.String() + inFlow(entries) + ", " + text
}

func inFlow(entries map[string]string) string { return strings.Join(missing(nil, entries, 0), ", ") }

// missing returns the lines for a mapping that does not exist yet: the keys of its path, and the entries below them.
// indent is the indentation of the first key.
func missing(path []string, entries map[string]string, indent int) (lines []string) {
	for _, key := range path {
		lines = append(lines, strings.Repeat(" ", indent)+key+":")
		indent += 2
	}
	for _, key := range sortedKeys(entries) {
		lines = append(lines, strings.Repeat(" ", indent)+key+": "+entries[key])
	}
	return lines
}
