package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/internal/userfile"
)

// parse reads the only YAML document in the text of a file. It returns nil for an empty document. lines maps lines of
// the text to lines of the file, as alignLines returns them; nil means that the lines are the same.
func (d *draft) parse(file string, text []byte, lines []int) (*yaml.Node, error) {
	if d.bytes += len(text); d.bytes > userfile.Text {
		return nil, fmt.Errorf("%s: the file and the files before it have more than %d MiB (use smaller files)", file, userfile.Text>>20)
	}
	var doc *yaml.Node
	for next, err := range documents(file, text, lines) {
		switch {
		case err != nil:
			return nil, err
		case doc == nil:
			doc = next.Content[0]
		case next.Content[0].Tag != "!!null": // the document is not a --- with nothing after it
			at := placeOf(file, next, "")
			at.Text = "the file contains a second YAML document (keep one document per file)"
			return nil, errors.New(at.String())
		}
	}
	if doc == nil {
		return nil, nil
	}
	return doc, d.begin(file, doc)
}

// documents yields the non-empty YAML documents in text, and stops after the first error. The nodes have the line
// numbers of the file.
func documents(file string, text []byte, lines []int) iter.Seq2[*yaml.Node, error] {
	var place func(n *yaml.Node)
	place = func(n *yaml.Node) {
		if n.Line <= len(lines) {
			n.Line = lines[n.Line-1]
		} else {
			n.Line = 0
		}
		for _, child := range n.Content {
			place(child)
		}
	}
	return func(yield func(*yaml.Node, error) bool) {
		for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
			doc := new(yaml.Node)
			err := decoder.Decode(doc)
			if err == nil && lines != nil {
				place(doc)
			}
			switch {
			case err == io.EOF:
				return
			case err != nil:
				yield(nil, yamlError(file, text, err, lines))
				return
			case len(doc.Content) > 0 && !yield(doc, nil):
				return
			}
		}
	}
}

// begin prepares the root of a document for the conversion. It returns an error if the document is too large, or if one
// of its mappings has a key twice.
func (d *draft) begin(file string, root *yaml.Node) error {
	if !d.fits(root) {
		return fmt.Errorf("%s: the file, its aliases and the files before it have more than %d values (use fewer)", file, maxNodes)
	}
	before := len(d.errs)
	d.merge(file, root)
	d.roots = append(d.roots, &fields{file: file, node: root})
	errs := d.errs[before:]
	d.errs = d.errs[:before]
	return errors.Join(errs...)
}

// merge replaces each alias by the value of its anchor, and each merge key (<<) by the fields that it merges. The
// mapping's own fields win, then the fields of the first merged mapping. A key that a mapping has twice is an error.
func (d *draft) merge(file string, n *yaml.Node) {
	for i, child := range n.Content {
		if child.Kind == yaml.AliasNode {
			n.Content[i] = child.Alias
		}
		d.merge(file, n.Content[i])
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	var own, merged []*yaml.Node
	known := map[string]bool{}
	for key, value := range pairs(n) {
		if known[key.Value] && key.Kind == yaml.ScalarNode {
			d.fail(placeOf(file, key, key.Value), "the field appears twice (keep one)")
		}
		known[key.Value] = true
		if key.Tag != "!!merge" {
			own = append(own, key, value)
			continue
		}
		all := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			all = value.Content
		}
		for _, one := range all {
			if one.Kind != yaml.MappingNode {
				d.fail(placeOf(file, key, key.Value), "must be a mapping or a list of mappings")
				continue
			}
			merged = append(merged, one.Content...)
		}
	}
	for key, value := range pairs(&yaml.Node{Content: merged}) {
		if !known[key.Value] {
			own = append(own, key, value)
			known[key.Value] = true
		}
	}
	n.Content = own
}

// maxNodes is the maximum number of values of all documents. Each use of an alias counts all its values again, because
// a few lines with aliases of aliases can stand for billions of values.
const maxNodes = 100_000

// fits reports whether n and all earlier documents have at most maxNodes values.
func (d *draft) fits(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.values++
	return d.values <= maxNodes && !slices.ContainsFunc(n.Content, func(child *yaml.Node) bool { return !d.fits(child) })
}

// yamlLine matches an error message of the YAML parser: an optional line, and the text.
var yamlLine = regexp.MustCompile(`^(?:yaml: )+(?:line (\d+): )?(.*)$`)

// yamlError returns the error for a text that is not valid YAML, with the position in the file. `lines` maps lines of
// the text to lines of the file, as in parse.
func yamlError(file string, text []byte, err error, lines []int) error {
	r := Remark{File: file, Text: err.Error() + " (the file is not valid YAML)"}
	if m := yamlLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " ")); m != nil {
		r.Line, _ = strconv.Atoi(m[1])
		r.Text = m[2] + " (the file is not valid YAML)"
	}
	// The strict reader locates an unclosed bracket or quote better, but accepts only one document.
	_, strict := strictyaml.Parse(file, text)
	if e, ok := errors.AsType[*strictyaml.Error](strict); ok && e.Line > 0 && !strings.Contains(e.Msg, "second YAML document") {
		r.Line, r.Text = e.Line, fmt.Sprintf("%s (%s)", e.Msg, e.Hint)
	}
	if lines != nil && r.Line > 0 {
		at := lines[min(r.Line, len(lines))-1]
		for before := min(r.Line, len(lines)) - 1; at == 0 && before > 0; before-- {
			at = lines[before-1]
		}
		r.Line = at
	}
	r.Text = "invalid YAML: " + r.Text
	return errors.New(r.String())
}

// maxCompared is the maximum number of bytes that alignLines compares. Comparing them takes a few seconds.
const maxCompared = 1 << 30

// alignLines returns, for each line of a rendered template, the number of the template line that it comes from, or 0 if
// unknown. It matches lines in order by their text, where a template action may stand for any text. After it has
// compared about maxCompared bytes, it leaves all further lines unknown.
func alignLines(templateText, rendered string) []int {
	from := strings.Split(templateText, "\n")
	to := strings.Split(rendered, "\n")
	lines := make([]int, len(to))
	next, left := 0, maxCompared
	for i, line := range to {
		if left < 0 {
			break
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		renders := func(t string) bool {
			left -= len(t) + len(line) + 64
			return left >= 0 && mayRender(t, line)
		}
		at := slices.IndexFunc(from[min(next, len(from)):], renders)
		if at < 0 { // a loop may have produced the line
			if at = slices.IndexFunc(from, renders); at < 0 {
				continue
			}
			lines[i] = at + 1
			continue
		}
		lines[i], next = next+at+1, next+at+1
	}
	return lines
}

// mayRender reports whether templateLine may render to line: line must contain, in order, all texts around the
// template's actions. A template line that consists only of actions never matches.
func mayRender(templateLine, line string) bool {
	if !strings.Contains(templateLine, "{{") {
		return strings.TrimSpace(templateLine) == strings.TrimSpace(line)
	}
	texts := false
	for i, part := range strings.Split(templateLine, "{{") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "}}")
		}
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		at := strings.Index(line, part)
		if at < 0 {
			return false
		}
		texts, line = true, line[at+len(part):]
	}
	return texts
}
