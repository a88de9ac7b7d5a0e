package importer

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/template"
)

// edit changes a template with inText, which edits the lines of one document. To verify the change, edit renders the
// old and the new template with each set of values in `all`. It applies inObject to the old objects and compares them
// with the new ones. If they differ, edit returns the original text and false.
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

// find searches for a key in the block lines[from:end]. parentIndent is the indentation of the block's parent key. at
// is the index of the line with the key, or -1. childIndent is the indentation of the keys in the block, or -1 if the
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

// dropUnknown removes from a template the fields that API servers do not know and would drop from objects. It returns
// the names of these fields, and false if it cannot remove all of them.
func dropUnknown(limits *template.Bounds, text string, values []map[string]any, objects []manifest) (changed string, names []string, ok bool) {
	for _, m := range objects {
		for _, path := range builtin.UnknownFields(m) {
			names = append(names, strings.Join(path, "."))
		}
	}
	if len(names) == 0 {
		return text, nil, true
	}
	changed, ok = edit(limits, text, values, func(lines []string, m manifest, _ int) []string {
		for _, path := range builtin.UnknownFields(m) {
			if at, end, _ := locate(lines, path); len(at) == len(path) {
				lines = slices.Delete(slices.Clone(lines), at[len(at)-1], end)
			}
		}
		return lines
	}, func(m manifest, _ int, _ map[string]any) {
		for _, path := range builtin.UnknownFields(m) {
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

// locate finds the keys of a path in a document. at holds the line index of each key, up to the first missing key. end
// is the end of the block below the last key found, and child is the indentation of the keys in this block.
func locate(lines, path []string) (at []int, end, child int) {
	from, indent := 0, -1
	for end = len(lines); ; end = blockEnd(lines, from-1) {
		key := ""
		if len(at) < len(path) {
			key = path[len(at)]
		}
		next, child := find(lines, from, end, indent, key)
		if child < 0 {
			child = indent + 2
		}
		if next < 0 {
			return at, end, child
		}
		at, from, indent = append(at, next), next+1, child
	}
}

// addEntries adds entries to the mapping at a path of a document. If there is no such mapping, addEntries creates it.
// The values of entries are YAML text.
func addEntries(lines, path []string, entries map[string]string) []string {
	at, _, child := locate(lines, path)
	if len(at) == 0 {
		return lines
	}
	for depth, line := range at {
		if flow := flowValue.FindString(lines[line]); flow != "" {
			n := strings.LastIndexByte(flow, '{') + 1
			changed := lines[line][:n] + intoFlow(lines[line][n:], path[depth+1:], entries)
			return slices.Replace(slices.Clone(lines), line, line+1, changed)
		}
	}
	return slices.Insert(slices.Clone(lines), at[len(at)-1]+1, missing(path[len(at):], entries, child)...)
}

// flowValue matches a key whose value is a flow mapping on the same line.
var flowValue = regexp.MustCompile(`^ *[^\s#:'"{\[-][^:#]*:\s+\{([^{]|$)`)

// intoFlow adds entries to the mapping at a path inside a flow mapping. text is the line after its opening brace.
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

// addLabels adds labels to each object of a template and to the object's pod template. labels returns the labels for
// the document with a given index; their values may be template expressions. If inherit is set, pod templates also get
// the labels of their object. If it fails, addLabels returns the text unchanged and false.
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
			lack := maps.Clone(entries)
			maps.DeleteFunc(lack, func(key, _ string) bool { _, own := m.at(path...)[key]; return own })
			if len(lack) > 0 {
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
				if _, own := at[key]; own {
					continue
				}
				at[key] = value
				if t, err := template.ParseValue(value); err == nil { // the value may be a template expression
					if v, err := t.Value(values, 1, 1); err == nil {
						at[key] = fmt.Sprint(v)
					}
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
	at, end, _ := locate(lines, []string{"metadata", "labels"})
	if len(at) < 2 {
		return own
	}
	for _, line := range lines[at[1]+1 : end] {
		if key := keyLine.FindStringSubmatch(line); key != nil {
			name := strings.Trim(key[2], `"'`)
			if _, is := m.at("metadata", "labels")[name]; is {
				own[name] = strings.TrimSpace(key[3])
			}
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
