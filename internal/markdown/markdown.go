// Package markdown escapes text for the Markdown pages that show the summaries of runs and of alert proofs.
package markdown

import "strings"

var markup = strings.NewReplacer(
	"\\", "\\\\", "&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "\n", " ",
)

// Cell escapes text for a cell of a table. The result is one line, in which Markdown and HTML show all characters
// literally.
func Cell(s string) string { return markup.Replace(s) }
