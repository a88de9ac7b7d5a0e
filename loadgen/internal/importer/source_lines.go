package importer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// yamlLine matches an error message of the YAML parser: an optional line, and the text.
var yamlLine = regexp.MustCompile(`^(?:yaml: )+(?:line (\d+): )?(.*)$`)

// yamlError returns the error for a text that is not valid YAML, with the position in the file. lines is source.lines.
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

// maxCompared limits the time of alignLines to a few seconds.
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
