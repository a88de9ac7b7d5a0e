package chart

import (
	"cmp"
	"fmt"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Waterfall shows the path of a change through the control plane. Each hop (step) has a bar, from the time when its
// first object, such as a pod, arrived to the time when its last one did. Times are in seconds since just before the
// change was sent.
type Waterfall struct {
	ID, Title, Where string
	Note, Summary    string
	Bars             []hopBar
	Ticks            []Mark

	Name  string
	ticks []tick
}

type tick struct {
	share float64
	label string
}

// hopBar is the bar of a hop. X, Y and W are in the coordinates of the drawing, in which a row has the height 10. X
// is empty if no object reached the hop.
type hopBar struct {
	Name, Text, Title string
	X, W              string
	Y, Row            int
	Short             bool   // whether some objects did not arrive
	Left, Right       string // position of the text in percent: only one is set, or neither if the text does not fit

	from, to float64 // start and end of the bar, in the coordinates of a plot
	side     side
}

// side is the place for the text of a bar: behind, inside or before the bar, or nowhere.
type side int

const (
	nowhere side = iota
	behind
	inside
	before
)

// hopLetter and hopPad determine the width of a text in the coordinates of a plot: hopLetter per letter, plus hopPad.
const hopLetter, hopPad = 9.5, 24

// Inside reports whether the text is inside the bar.
func (b hopBar) Inside() bool { return b.side == inside }

// Height returns the height of the drawing, in its own coordinates.
func (w Waterfall) Height() int { return 10 * len(w.Bars) }

// Rems returns the height of the drawing on the page, in the CSS unit rem. Rows have the same height as in a track.
func (w Waterfall) Rems() string { return Coordinate(1.5 * float64(len(w.Bars))) }

// Hop is a step of a change through the control plane, such as the binding of its pods.
type Hop struct {
	Name        string
	First, Last *float64 // times of the first and the last object in seconds; nil if no object arrived
	Count       int64    // number of objects that arrived
	Short       bool     // whether some objects did not arrive
}

// NewWaterfall returns the waterfall of hops. Its ID is made from name. It shows the texts title, where and note.
func NewWaterfall(name, title, where, note string, hops []Hop) Waterfall {
	w := Waterfall{ID: ID(name), Name: name, Title: title, Where: where, Note: note}
	longest := 0.0
	for _, h := range hops {
		if h.Last != nil {
			longest = max(longest, *h.Last)
		}
	}
	axis := newScale(0, longest, false, scenario.Seconds)
	for _, t := range axis.Ticks {
		at := tick{t / axis.High, tickLabel(scenario.Seconds, t)}
		w.ticks = append(w.ticks, at)
		w.Ticks = append(w.Ticks, Mark{PercentAt(at.share), at.label})
	}
	for i, h := range hops {
		w.Bars = append(w.Bars, newHopBar(h, i, axis.High))
	}
	w.Summary = fmt.Sprintf("%s, %s: %d steps, the last object after %s.", w.Title, w.Where, len(w.Bars), Format(scenario.Seconds, longest))
	return w
}

func newHopBar(h Hop, row int, high float64) hopBar {
	b := hopBar{Name: h.Name, Short: h.Short, Row: row, Y: 10*row + 1, Left: "0"}
	if h.First == nil || h.Last == nil {
		b.Text = "no object"
		b.Title, b.side = b.Name+": no object reached this step", behind
		return b
	}
	b.from, b.to = *h.First/high*PlotWidth, *h.Last/high*PlotWidth
	width := max(b.to-b.from, minBar)
	b.X, b.W = Coordinate(min(b.from, PlotWidth-minBar)), Coordinate(width)
	b.Text = Format(scenario.Seconds, *h.Last)
	if *h.First != *h.Last {
		b.Text = Format(scenario.Seconds, *h.First) + " to " + b.Text
	}
	if h.Count != 1 {
		b.Text = Count(h.Count) + ", " + b.Text
	}
	b.Title = b.Name + ": " + b.Text
	b.place(hopLetter*float64(terminal.TextWidth(b.Text)) + hopPad)
	return b
}

// place chooses the side for the text of the bar, and sets its position. needs is the width of the text.
func (b *hopBar) place(needs float64) {
	b.Left = ""
	switch {
	case PlotWidth-b.to >= needs:
		b.side, b.Left = behind, PercentAt(b.to/PlotWidth)
	case b.to-b.from >= needs:
		b.side, b.Left = inside, PercentAt(b.from/PlotWidth)
	case b.from >= needs:
		b.side, b.Right = before, PercentAt(1-b.from/PlotWidth)
	}
}

// SVG draws the hops of a rollout as a separate picture.
func (w Waterfall) SVG(origin string) []byte {
	const high = 24
	s := &sheet{}
	s.head("Rollout: "+w.Title, w.Where, "Each bar is a step. It begins when the first object reached the step, and ends when the last object did. Time 0 is just before the change was sent.")
	a := axis{s, nil, 130, sheetWidth - sheetMargin - 14}
	top, height := s.y, high*float64(len(w.Bars))
	for _, t := range w.ticks {
		s.line(a.at(t.share), top, a.at(t.share), top+height, gridInk, 1, "")
		s.text(a.at(t.share), top+height+15, t.label, words{size: smallSize, fill: dimInk, anchor: "middle"})
	}
	for i, b := range w.Bars {
		y := top + high*float64(i)
		s.text(a.x0-8, y+16, fit(b.Name, bodySize, a.x0-8-sheetMargin), words{anchor: "end"})
		x, end := a.plotted(b.from), max(a.plotted(b.to), a.plotted(b.from)+2.5)
		if b.X != "" {
			s.rect(x, y+3, end-x, high-6, b.ink(), 1)
		}
		switch b.side {
		case behind:
			s.text(end+6, y+16, b.Text, words{})
		case inside:
			s.text(x+8, y+16, b.Text, words{fill: paper})
		case before:
			s.text(x-6, y+16, b.Text, words{anchor: "end"})
		}
	}
	s.y = top + height + 24
	s.paragraph(cmp.Or(w.Note, w.Summary), 1, words{})
	return s.svg("Rollout: "+w.Title, w.Summary, origin)
}

func (b hopBar) ink() string {
	i := 0
	if b.Short {
		i = 1
	}
	colour, _ := seriesInk(i)
	return colour
}
