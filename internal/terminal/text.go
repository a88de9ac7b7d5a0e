package terminal

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Columns returns the width of the terminal to which w writes, or 100 if w is not a terminal.
func Columns(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 100
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// TextWidth returns the width of s in characters.
func TextWidth(s string) int { return utf8.RuneCountInString(s) }

// Shorten shortens s to at most width characters.
func Shorten(s string, width int) string {
	if TextWidth(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	return strings.TrimRight(string([]rune(s)[:width-1]), " ") + "…"
}

// Wrap breaks s into lines of at most width characters, between words. It also breaks words that are longer.
func Wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(s) {
		for long := []rune(w); len(long) > width && width > 0; w = string(long) {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			lines, long = append(lines, string(long[:width])), long[width:]
		}
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
