package terminal

import (
	"fmt"
	"strings"
	"unicode"
)

// Clean makes text from an untrusted source safe to print. It returns one line without control characters, which could
// rewrite the terminal, and without format characters, which could reverse the reading order.
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

// firstPart and lastPart are the numbers of characters that CleanLines keeps of a long line.
const firstPart, lastPart = 3000, 1000

// CleanLines cleans each line of a text. It keeps the line breaks and the indentation. It cuts the middle out of a long
// line and keeps the end, because the end of an error says what to do.
func CleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		lines[i] = line[:indent] + Clean(line)
		if long := []rune(lines[i]); len(long) > firstPart+lastPart {
			lines[i] = string(long[:firstPart]) + " ... " + string(long[len(long)-lastPart:])
		}
	}
	return strings.Join(lines, "\n")
}

// maxLines is the maximum number of lines of an error that a program prints.
const maxLines = 200

// Problems returns the clean lines of an error. If there are more than maxLines, a last line says how many are missing.
func Problems(err error) []string {
	lines := strings.Split(strings.TrimSpace(CleanLines(err.Error())), "\n")
	if more := len(lines) - maxLines; more > 0 {
		lines = append(lines[:maxLines], fmt.Sprintf("%d more lines", more))
	}
	return lines
}
