// Package markdown writes text into pages of Markdown: the summaries of runs and of
// the alerts' proofs.
package markdown

import "strings"

var markup = strings.NewReplacer(
	"\\", "\\\\", "&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "\n", " ",
)

// Cell escapes text for a cell of a table, on one line: Markdown and HTML show its
// characters literally.
func Cell(s string) string { return markup.Replace(s) }
