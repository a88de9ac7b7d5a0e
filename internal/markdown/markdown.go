// Package markdown writes text into pages of Markdown: the summaries of runs and of
// the alerts' proofs.
package markdown

import "strings"

var markup = strings.NewReplacer(
	"\\", "\\\\", "&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "\n", " ",
)

// Cell makes text stand for itself in a cell of a table, on one line, whatever of
// it Markdown or HTML would take for its own.
func Cell(s string) string { return markup.Replace(s) }
