package chart

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
)

// The colours and fonts of pictures in files. The colours are the light colours of document/style.css. They are set on
// each SVG element, because GitHub and mail readers show pictures without a style sheet.
const (
	paper      = "#ffffff"
	ink        = "#1b1f24"
	dimInk     = "#5a616b"
	gridInk    = "#e6e6e1"
	bandInk    = "#8a93a0"
	bandFault  = "#c2410c"
	faultInk   = "#a5211a"
	eventInk   = "#6b7280"
	sheetFonts = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif"
)

func seriesInk(i int) (colour, dash string) {
	colours := [MaxSeries]string{"#0b62a8", "#b8480a", "#0b7d62", "#99488f", "#946800", "#2b8bc4", "#5c636e", "#c2334d"}
	dashes := [MaxSeries]string{4: "6 3", 5: "2 3.5", 6: "9 3 2 3", 7: "4 4"}
	return colours[i%MaxSeries], dashes[i%MaxSeries]
}

// Sizes in a picture, in pixels. The height of a picture depends on its contents.
const (
	sheetWidth  = 960.0
	sheetMargin = 16.0
	bodySize    = 12.0
	smallSize   = 11.0
)

// sheet is an SVG picture for a file. Its methods add elements from top to bottom; y is the current position in pixels.
type sheet struct {
	body strings.Builder
	y    float64
}

func (s *sheet) rect(x, y, w, h float64, fill string, opacity float64) {
	fmt.Fprintf(&s.body, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"`, Coordinate(x), Coordinate(y), Coordinate(w), Coordinate(h), fill)
	if opacity < 1 {
		fmt.Fprintf(&s.body, ` fill-opacity="%s"`, Number(opacity, 2))
	}
	s.body.WriteString("/>\n")
}

func (s *sheet) line(x1, y1, x2, y2 float64, stroke string, width float64, dash string) {
	fmt.Fprintf(&s.body, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" stroke-width="%s"%s/>`+"\n",
		Coordinate(x1), Coordinate(y1), Coordinate(x2), Coordinate(y2), stroke, Coordinate(width), dashed(dash))
}

// path draws the path d, relative to the point x, y.
func (s *sheet) path(x, y float64, d, stroke string, width float64, dash string) {
	if d == "" {
		return
	}
	fmt.Fprintf(&s.body, `<path transform="translate(%s %s)" d="%s" fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round" stroke-linecap="round"%s/>`+"\n",
		Coordinate(x), Coordinate(y), d, stroke, Coordinate(width), dashed(dash))
}

func dashed(dash string) string {
	if dash == "" {
		return ""
	}
	return ` stroke-dasharray="` + dash + `"`
}

// words is the style of a text. The zero value means bodySize, the colour ink, and text that begins at x.
type words struct {
	size   float64
	fill   string
	anchor string // part of the text that is at x: "start", "middle" or "end"; empty: start
	bold   bool
}

// text writes one line with its baseline at y.
func (s *sheet) text(x, y float64, text string, w words) {
	if text == "" {
		return
	}
	size, fill := cmp.Or(w.size, bodySize), cmp.Or(w.fill, ink)
	fmt.Fprintf(&s.body, `<text x="%s" y="%s" font-size="%s" fill="%s"`, Coordinate(x), Coordinate(y), Coordinate(size), fill)
	if w.anchor != "" {
		fmt.Fprintf(&s.body, ` text-anchor="%s"`, w.anchor)
	}
	if w.bold {
		s.body.WriteString(` font-weight="650"`)
	}
	s.body.WriteString(">" + escape(text) + "</text>\n")
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(terminal.Clean(text))) // writing to a Builder cannot fail
	return b.String()
}

// widthOf estimates the width of a text, because the font of the reader is unknown. The estimate is slightly too
// large, so that the text is not cut off.
func widthOf(text string, size float64) float64 {
	return 0.58 * size * float64(terminal.TextWidth(text))
}

// fit shortens a text so that its estimated width is at most width.
func fit(text string, size, width float64) string {
	return terminal.Shorten(text, int(width/(0.58*size)))
}

// paragraph writes a text over the width of the picture. It cuts the text off after `most` lines.
func (s *sheet) paragraph(text string, most int, w words) {
	const letters = 145 // number of letters of size bodySize that fit into the width of a picture
	lines := terminal.Wrap(terminal.Clean(text), letters)
	for i, l := range lines[:min(len(lines), most)] {
		if i == most-1 && len(lines) > most {
			l += " …"
		}
		s.text(sheetMargin, s.y+bodySize, l, w)
		s.y += bodySize + 5
	}
}

// head writes the head of the picture: the title, a note, and a sentence that explains the picture.
func (s *sheet) head(title, note, tells string) {
	s.y = sheetMargin
	s.text(sheetMargin, s.y+15, fit(title, 17, sheetWidth-2*sheetMargin-widthOf(note, bodySize)-12), words{size: 17, bold: true})
	s.text(sheetWidth-sheetMargin, s.y+15, note, words{fill: dimInk, anchor: "end"})
	s.y += 26
	s.paragraph(tells, 3, words{fill: dimInk})
	s.y += 6
}

// svg ends the picture and returns it as SVG. from is the last line of the picture, which names the run.
func (s *sheet) svg(title, summary, from string) []byte {
	s.y += 8
	s.line(sheetMargin, s.y, sheetWidth-sheetMargin, s.y, gridInk, 1, "")
	s.text(sheetMargin, s.y+17, fit(from, smallSize, sheetWidth-2*sheetMargin), words{size: smallSize, fill: dimInk})
	height := s.y + 28
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]s %[2]s" width="%[1]s" height="%[2]s" role="img" aria-labelledby="title summary" font-family="%[3]s">`+"\n",
		Coordinate(sheetWidth), Coordinate(height), sheetFonts)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"summary\">%s</desc>\n", escape(title), escape(summary))
	fmt.Fprintf(&b, `<rect width="%s" height="%s" rx="6" fill="%s"/>`+"\n", Coordinate(sheetWidth), Coordinate(height), paper)
	b.WriteString(s.body.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}
