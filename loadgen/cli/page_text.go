package cli

import (
	"strings"
	"unicode"
)

// Styles of text, as SGR parameters of a terminal.
const (
	bold    = "1"
	dim     = "2"
	inverse = "7"
)

// span is text in one style. Each rune has a width of one column.
type span struct{ text, style string }

type line []span

func (l line) plain() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// fit truncates the line to a width in columns, or pads the line with spaces to this width.
func (l line) fit(width int) line {
	out := l.cut(width)
	if room := width - len([]rune(out.plain())); room > 0 {
		out = append(out, span{strings.Repeat(" ", room), ""})
	}
	return out
}

func (l line) cut(width int) (out line) {
	for _, s := range l {
		r := []rune(s.text)
		if len(r) > width {
			r = r[:max(0, width)]
		}
		width -= len(r)
		if len(r) > 0 {
			out = append(out, span{string(r), s.style})
		}
	}
	return out
}

// text returns the line with styles, truncated to the given width of the terminal.
func (l line) text(width int, colours bool) string {
	var b strings.Builder
	for _, s := range l.cut(width) {
		if s.style == "" || !colours {
			b.WriteString(s.text)
			continue
		}
		b.WriteString("\x1b[" + s.style + "m" + s.text + "\x1b[0m")
	}
	return b.String()
}

// clean makes untrusted text safe to show. It replaces control characters with spaces. It replaces runes that may be
// wider than one column, or that combine with another rune, with question marks.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == unicode.ReplacementChar:
			return ' '
		case r >= 0x1100 && !(r >= 0x2000 && r < 0x2600), unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
			return '?'
		}
		return r
	}, text)
}
