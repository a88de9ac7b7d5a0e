package chart

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes foreign text safe to show: one line, no control characters
// (which could rewrite a terminal) and none that reverse the reading order.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

// TextWidth is the width of s in characters.
func TextWidth(s string) int { return utf8.RuneCountInString(s) }

// Shorten cuts s to width characters.
func Shorten(s string, width int) string {
	if TextWidth(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	return strings.TrimRight(string([]rune(s)[:width-1]), " ") + "…"
}

// Wrap breaks words into lines of at most width characters.
func Wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(s) {
		w = Shorten(w, width)
		switch {
		case line == "":
			line = w
		case TextWidth(line)+1+TextWidth(w) <= width:
			line += " " + w
		default:
			lines = append(lines, line)
			line = w
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
