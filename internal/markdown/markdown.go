// Package markdown escapes text for Markdown pages: the summaries of runs and of alert proofs.
package markdown

import "strings"

var markup = strings.NewReplacer(
	"\\", "\\\\", "&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "\n", " ",
)

// Cell escapes text for a cell of a table. It returns one line whose characters Markdown and HTML show literally.
func Cell(s string) string { return markup.Replace(s) }
