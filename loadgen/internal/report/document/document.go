// Package document is the model of all HTML pages except the report of a run: tables and small drawings under headings.
// The pages of comparisons, capacity searches, trends and folders of runs are documents.
//
// A page needs no network. A content security policy in the page forbids all requests and all scripts, except the
// page's own script, which it allows by hash. The template escapes all texts. Callers remove control characters from
// texts of a cluster or a user (terminal.Clean).
package document

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
)

// Document is a page.
type Document struct {
	Title string // title of the browser's window
	// Style is the colour of the header: "pass", "fail", "nodata" or "pending". Empty means no colour.
	Style string
	// Word is the verdict or answer in the header. It may be empty.
	Word          string
	Heading, Line string // heading of the page, and a line below it
	Lead          []string
	Links         []Link // navigation above the header
	Sections      []Section
	Footer        string
	// Script is the script of the page. Empty means that the page has no script and sends no requests.
	Script template.JS
	// Data is JSON for the script, which finds it in the element with the ID "data".
	Data template.JS
	// Rules are style rules that only this page needs.
	Rules template.CSS
	// Live means that the script may send requests to the server of the page.
	Live bool
}

// Section is a part of a page with a heading. It shows its fields in their order.
type Section struct {
	ID, Title string
	Text      []string
	HTML      template.HTML
	Form      *Form
	Table     *Table
	Figures   []Figure
	Links     []Link
	Hint      string
}

// Link is a link to another page or to a part of this page. To is its href.
type Link struct{ Text, To string }

// Form is a form whose submission opens a page with its fields as query parameters.
type Form struct {
	To     string // the page to open
	Submit string // text of the button
	Fields []Field
}

// Field is a field of a form: a menu if it has options, otherwise a line of text.
type Field struct {
	Name, Label, Value string
	Options            []string
}

// Table is a table. The first column contains the names of the rows.
type Table struct {
	ID    string
	Label string // name of the table for screen readers
	Class string
	// Form is the page that the button Submit opens with the values of all checked cells as query parameters `run`.
	// Empty means that no cell has a checkbox.
	Form, Submit string
	Head         []Column
	Rows         []Row
	Empty        string // text that replaces a table without rows
}

// Column is the heading of a column. The cells of a numeric column are aligned right.
type Column struct {
	Text    string
	Numeric bool
}

// Row is a row of a table.
type Row struct {
	ID    string
	Cells []Cell
	// Search and Facets are for the script of a page without a server. The script searches the text in Search, and
	// filters rows by the values in Facets.
	Search string
	Facets map[string]string
}

// Cell is a cell of a table. It shows its fields in their order.
type Cell struct {
	Check   string // value of a checkbox in the cell; empty: no checkbox
	Text    string
	To      string // URL of the page that Text links to; empty: no link
	Chip    string // colour of the label that shows Text, as in Document.Style; empty: plain text
	Strong  bool
	Value   string // text after Text, in bold
	Dim     string // text after Text, in a pale colour
	Bar     *int   // length of a bar in the cell, in percent; nil: no bar
	Drawing *Drawing
	Small   []string // lines below the text
	Links   []Link   // links below the lines in Small
}

// Figure is a drawing with a caption.
type Figure struct {
	ID          string
	Caption     string
	Drawing     Drawing
	Left, Right string // labels of the ends of the horizontal axis
	Notes       []string
	Links       []Link
}

// Drawing is an SVG drawing. Positions in the drawing are in the units of Width and Height.
type Drawing struct {
	Class         string
	Width, Height float64
	Label         string // text for screen readers
	Shapes        []Shape
}

// Role returns the role of the drawing for screen readers: a group if it has links, which an image would hide.
func (d Drawing) Role() string {
	for _, s := range d.Shapes {
		if s.To != "" {
			return "group"
		}
	}
	return "img"
}

// Shape is a part of a drawing. If Dot is set, it is a dot at X, Y. Otherwise it is a rectangle if W is not 0, or else
// a line from X, Y to X2, Y2.
type Shape struct {
	Class  string
	Dot    bool
	X, Y   float64
	W, H   float64
	X2, Y2 float64
	Title  string // tooltip
	To     string // page that a click opens
}

//go:embed style.css
var styleSheet string

// Style returns the style sheet of all pages.
func Style() template.CSS { return template.CSS(styleSheet) }

//go:embed document.tmpl
var source string

var parsed = template.Must(template.New("document").Funcs(template.FuncMap{"stylesheet": Style, "json": inJSON}).Parse(source))

func inJSON(facets map[string]string) (string, error) {
	text, err := json.Marshal(facets)
	return string(text), err
}

// Write writes a page.
func Write(w io.Writer, d Document) error {
	var buf bytes.Buffer
	if err := parsed.Execute(&buf, d); err != nil {
		return fmt.Errorf("render the page: %w", err)
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// Policy returns the content security policy of the page.
func (d Document) Policy() string {
	policy := "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action "
	if d.forms() {
		policy += "'self'"
	} else {
		policy += "'none'"
	}
	if d.Script != "" {
		hash := sha256.Sum256([]byte(d.Script))
		policy += "; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	}
	if d.Live {
		policy += "; connect-src 'self'"
	}
	return policy
}

func (d Document) forms() bool {
	for _, s := range d.Sections {
		if s.Form != nil || s.Table != nil && s.Table.Form != "" {
			return true
		}
	}
	return false
}
