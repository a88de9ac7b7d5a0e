package report

import (
	"slices"
	"strings"
)

// tableView is a table of the page. The first column names the row.
type tableView struct {
	Caption, Note, Empty string
	Head                 []head
	Rows                 [][]string
	// Merged is in how many columns, from the first, a cell that says the same as
	// the one above it is read aloud but not shown.
	Merged int
}

// Again reports whether a cell, and all before it, say what stands above them.
func (t tableView) Again(row, column int) bool {
	return column < t.Merged && row > 0 && slices.Equal(t.Rows[row][:column+1], t.Rows[row-1][:column+1])
}

type head struct {
	Text    string
	Numeric bool
}

// heads makes columns; a leading ">" marks numbers, aligned right.
func heads(texts ...string) []head {
	out := make([]head, len(texts))
	for i, t := range texts {
		out[i].Text, out[i].Numeric = strings.CutPrefix(t, ">")
	}
	return out
}

func (t *tableView) add(cells ...string) { t.Rows = append(t.Rows, cells) }
