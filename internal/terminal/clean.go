package terminal

import (
	"strings"
	"unicode"
)

// Clean makes text from an untrusted source safe to print. It returns one line without control characters, which could rewrite
// the terminal, and without format characters, which could reverse the reading order.
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
