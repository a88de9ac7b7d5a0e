package panel

import (
	"regexp"
	"strings"
	"unicode"
)

var placeholder = regexp.MustCompile(`\{\{\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*\}\}`)

// name fills a legend with a series' labels.
func name(legend string, labels map[string]string) string {
	s := clean(placeholder.ReplaceAllStringFunc(legend, func(m string) string {
		return labels[placeholder.FindStringSubmatch(m)[1]]
	}))
	if s == "" {
		s = "(no label)"
	}
	if r := []rune(s); len(r) > 60 {
		s = string(r[:59]) + "…"
	}
	return s
}

// clean makes foreign text one line without control characters, and without
// those that reverse the reading order. The template escapes the rest.
func clean(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s))
}
