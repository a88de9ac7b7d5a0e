package report

import (
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
)

// table holds text in aligned columns. If the table is too wide, lines shortens the flexible column with an ellipsis.
type table struct {
	rows  [][]cell
	align string // one letter per column: l (left), r (right), or f (flexible width, left)
}

type cell struct{ text, style string }

const gap = 2 // spaces between columns

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

func plain(texts ...string) []cell {
	cells := make([]cell, len(texts))
	for i, s := range texts {
		cells[i].text = s
	}
	return cells
}

func styled(style string, texts ...string) []cell {
	cells := plain(texts...)
	for i := range cells {
		cells[i].style = style
	}
	return cells
}

// widths returns the width of the widest cell of each column.
func (t *table) widths() []int {
	widths := make([]int, len(t.align))
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], terminal.TextWidth(c.text))
		}
	}
	return widths
}

// natural returns the width of the table if no cell is shortened.
func (t *table) natural() int {
	total := -gap
	for _, w := range t.widths() {
		if w > 0 {
			total += w + gap
		}
	}
	return total
}

// lines returns the rows of the table as lines of at most width columns, indented by indent
// spaces.
func (t *table) lines(indent, width int, paint painter) []string {
	widths := t.widths()
	total := indent + t.natural()
	if flex := strings.IndexByte(t.align, 'f'); flex >= 0 && total > width {
		widths[flex] = max(widths[flex]-(total-width), 4)
	}
	var out []string
	for _, row := range t.rows {
		var b strings.Builder
		b.WriteString(strings.Repeat(" ", indent))
		pending := 0 // spaces that are written only before further text, so that no line ends with spaces
		for i, c := range row {
			if widths[i] == 0 {
				continue
			}
			text := terminal.Shorten(c.text, widths[i])
			pad := widths[i] - terminal.TextWidth(text)
			if t.align[i] == 'r' {
				pending += pad
			}
			if text != "" {
				b.WriteString(strings.Repeat(" ", pending) + paint(c.style, text))
				pending = 0
			}
			if t.align[i] != 'r' {
				pending += pad
			}
			pending += gap
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

// painter adds terminal colours to a text, or returns it unchanged.
type painter func(style, text string) string

func noPaint(_, text string) string { return text }

func paintANSI(style, text string) string {
	code := map[string]string{
		"fail": "1;31", "nodata": "1;33", "pass": "32", "head": "1", "dim": "2",
	}[style]
	if code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// tableView is a table on the page. Its first column contains the names of the rows.
type tableView struct {
	Caption, Note, Empty string
	Head                 []head
	Rows                 [][]string
	// Merged is the number of leading columns in which a cell that repeats the cell above is hidden. Screen readers
	// still read hidden cells.
	Merged int
}

// Again reports whether a cell is hidden: it and all cells to its left equal those in the row above.
func (t tableView) Again(row, column int) bool {
	return column < t.Merged && row > 0 && slices.Equal(t.Rows[row][:column+1], t.Rows[row-1][:column+1])
}

type head struct {
	Text    string
	Numeric bool
}

// heads returns the headings of columns. A leading ">" marks a column of numbers, which is
// aligned right.
func heads(texts ...string) []head {
	out := make([]head, len(texts))
	for i, t := range texts {
		out[i].Text, out[i].Numeric = strings.CutPrefix(t, ">")
	}
	return out
}

func (t *tableView) add(cells ...string) { t.Rows = append(t.Rows, cells) }
