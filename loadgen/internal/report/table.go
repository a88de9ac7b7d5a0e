package report

import (
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/markdown"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
)

// table is a table of a report. Its methods format it: `lines` for a terminal, `markdown` for a pull request, and
// `document` for an HTML page. The template "table" formats it for the page of a run.
type table struct {
	Caption, Note, Empty string // texts that only pages show: above the table, below it, and instead of an empty table
	Head                 []head
	Rows                 [][]string // the first column contains the names of the rows
	// Merged is the number of leading columns in which the page hides a cell that repeats the cell above. Screen readers
	// still read hidden cells.
	Merged int
	// styles holds the styles of cells, by row and column. In documents, the styles of verdicts become labels.
	styles map[[2]int]string
}

// head is the heading of a column.
type head struct {
	Text     string
	Numeric  bool // whether the column is aligned right
	flexible bool // whether the method lines may shorten the cells if the table is too wide for the terminal
}

// heads returns the headings of columns. A leading ">" marks a column of numbers, and a leading "~" a flexible column.
func heads(texts ...string) []head {
	out := make([]head, len(texts))
	for i, t := range texts {
		t, out[i].Numeric = strings.CutPrefix(t, ">")
		out[i].Text, out[i].flexible = strings.CutPrefix(t, "~")
	}
	return out
}

func newTable(headings ...string) *table { return &table{Head: heads(headings...)} }

func (t *table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// style sets the style of cells in the last row, in the given columns.
func (t *table) style(style string, columns ...int) {
	if t.styles == nil {
		t.styles = map[[2]int]string{}
	}
	for _, c := range columns {
		t.styles[[2]int{len(t.Rows) - 1, c}] = style
	}
}

// Again reports whether the page hides a cell: it and all cells to its left equal those in the row above.
func (t table) Again(row, column int) bool {
	return column < t.Merged && row > 0 && slices.Equal(t.Rows[row][:column+1], t.Rows[row-1][:column+1])
}

// titles returns the texts of the headings.
func (t *table) titles() []string {
	all := make([]string, len(t.Head))
	for i, h := range t.Head {
		all[i] = h.Text
	}
	return all
}

// widths returns the width of the widest cell of each column. The method lines leaves out columns of width 0.
func (t *table) widths() []int {
	widths := make([]int, len(t.Head))
	for _, row := range append(t.Rows, t.titles()) {
		for i, text := range row {
			widths[i] = max(widths[i], terminal.TextWidth(text))
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

const (
	gap         = 2 // number of spaces between columns
	minFlexible = 4 // minimum width of a shortened column
)

// lines returns the headings, if any, and the rows as lines of at most width columns.
func (t *table) lines(width int, paint painter) []string {
	widths := t.widths()
	for excess := t.natural() - width; excess > 0; excess-- {
		widest := -1
		for i, h := range t.Head {
			if h.flexible && widths[i] > minFlexible && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	var out []string
	if titles := t.titles(); strings.Join(titles, "") != "" {
		out = append(out, t.rowLine(titles, widths, func(_ int, text string) string { return paint("head", text) }))
	}
	for i, row := range t.Rows {
		out = append(out, t.rowLine(row, widths, func(column int, text string) string { return paint(t.styles[[2]int{i, column}], text) }))
	}
	return out
}

func (t *table) rowLine(row []string, widths []int, paint func(column int, text string) string) string {
	var b strings.Builder
	pending := 0 // spaces that are written only before further text, so that no line ends with spaces
	for i, text := range row {
		if widths[i] == 0 {
			continue
		}
		text = terminal.Shorten(text, widths[i])
		pad := widths[i] - terminal.TextWidth(text)
		if t.Head[i].Numeric {
			pending += pad
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", pending) + paint(i, text))
			pending = 0
		}
		if !t.Head[i].Numeric {
			pending += pad
		}
		pending += gap
	}
	return strings.TrimRight(b.String(), " ")
}

// dropEmpty removes the headings of columns without values. The method lines then leaves out these columns.
func (t *table) dropEmpty() {
	for i := range t.Head {
		if !slices.ContainsFunc(t.Rows, func(row []string) bool { return row[i] != "" }) {
			t.Head[i].Text = ""
		}
	}
}

// takeColumn empties column i, and returns its cells as text, such as "200 in rollout, update; 100 in settle".
func (t *table) takeColumn(i int) string {
	var text, last string
	for _, row := range t.Rows {
		switch cell := row[i]; {
		case cell == "":
		case cell == last:
			text += ", " + row[0]
		default:
			text += "; " + cell + " in " + row[0]
			last = cell
		}
		row[i] = ""
	}
	t.Head[i].Text = ""
	return strings.TrimPrefix(text, "; ")
}

// markdown writes the table as Markdown after an empty line. All texts must already be Markdown.
func (t *table) markdown(b *strings.Builder) {
	b.WriteString("\n| " + strings.Join(t.titles(), " | ") + " |\n|")
	for _, h := range t.Head {
		b.WriteString(map[bool]string{false: "---|", true: "---:|"}[h.Numeric])
	}
	b.WriteString("\n")
	for _, row := range t.Rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
}

// document returns the table for an HTML page. The texts must contain no control characters.
func (t *table) document() *document.Table {
	d := &document.Table{Label: t.Caption, Empty: t.Empty}
	for _, h := range t.Head {
		d.Head = append(d.Head, document.Column{Text: h.Text, Numeric: h.Numeric})
	}
	for i, row := range t.Rows {
		cells := make([]document.Cell, len(row))
		for j, text := range row {
			cells[j].Text = text
			if style := t.styles[[2]int{i, j}]; style != "dim" && style != "head" {
				cells[j].Chip = style
			}
		}
		d.Rows = append(d.Rows, document.Row{Cells: cells})
	}
	return d
}

// section returns a section of an HTML page with the table and its note.
func (t *table) section(id string) document.Section {
	return document.Section{ID: id, Title: t.Caption, Table: t.document(), Hint: t.Note}
}

// inMarkdown returns a text as one line of Markdown that shows all its characters literally.
func inMarkdown(text string) string { return markdown.Cell(terminal.Clean(text)) }

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
