package chart

import (
	"fmt"
	"strings"
)

// ChartSVG draws a chart over the run's time.
func (x *Timeline) ChartSVG(d Chart) []byte {
	const height = 230
	s := &sheet{}
	scaleNote := ""
	if d.Log {
		scaleNote = "log scale"
	}
	s.head(d.Title, scaleNote, d.Tells)
	a := axis{s, x, 78, sheetWidth - sheetMargin}
	a.phases()
	if t, ok := x.faults(); ok {
		a.bars(t)
	}
	listed := a.marks()
	top := s.y + 4
	a.ground(top, height)
	a.levels(d.scale, d.Unit, top, height)
	if d.Guide != nil {
		y := top + d.scale.y(d.Level)*height/plotHeight
		s.line(a.x0, y, a.x1, y, ink, 1, "7 4")
		s.text(a.x1-4, y-4, d.Guide.Label, words{size: smallSize, anchor: "end"})
	}
	for _, l := range d.Series {
		colour, dash := seriesInk(l.Colour)
		path, dots := pathIn(l.Values, d.scale, a.x1-a.x0, height)
		s.path(a.x0, top, path, colour, 1.8, dash)
		s.path(a.x0, top, dots, colour, 4.5, "")
	}
	s.y = top + height
	a.times()
	a.legend(d.Series)
	s.y += 4
	s.paragraph(strings.TrimSpace(strings.TrimRight(d.Peak+" "+d.Where, " ")+". "+d.Note), 2, words{})
	a.list(listed)
	return s.svg(d.Title, d.Summary, x.Origin)
}

// legend names the lines, in as many columns as there is room for.
func (a axis) legend(lines []Line) {
	widest := 0.0
	for _, l := range lines {
		widest = max(widest, 30+widthOf(l.Name+"  "+l.Figure, bodySize)+18)
	}
	room := sheetWidth - 2*sheetMargin
	columns := max(int(room/widest), 1)
	for i, l := range lines {
		x := sheetMargin + float64(i%columns)*room/float64(columns)
		colour, dash := seriesInk(l.Colour)
		a.sheet.line(x, a.y+9, x+22, a.y+9, colour, 2.5, dash)
		name := fit(l.Name, bodySize, room/float64(columns)-48-widthOf(l.Figure, bodySize))
		a.text(x+30, a.y+13, name+"  "+l.Figure, words{})
		if i%columns == columns-1 || i == len(lines)-1 {
			a.y += 18
		}
	}
}

// SVG draws phases and what happened; faults, leaders and restarts as
// bars.
func (x *Timeline) SVG() []byte {
	const gap, least, mostLane = 4, 30, 260
	s := &sheet{}
	s.head("Timeline", "", "")
	lane := 0.0 // the widest name of a track
	for _, t := range x.Tracks {
		lane = max(lane, widthOf(t.Name, bodySize))
	}
	a := axis{s, x, sheetMargin + min(lane, mostLane) + 10, sheetWidth - sheetMargin}
	a.phases()
	listed := a.marks()
	top, height, summary := s.y, 0.0, fmt.Sprintf("%d phases. ", len(x.Bands))
	for _, t := range x.Tracks {
		height += float64(barHigh*t.Rows + 2*gap)
		summary += fmt.Sprintf("%s: %d. ", t.Name, len(t.Bars))
	}
	a.ground(top, max(height, least))
	for _, t := range x.Tracks {
		s.y += gap
		s.text(a.x0-8, s.y+12, fit(t.Name, bodySize, a.x0-8-sheetMargin), words{anchor: "end", bold: true})
		a.bars(t)
		s.y += gap
	}
	s.y = top + max(height, least)
	a.times()
	if len(x.Tracks) > 0 {
		s.y += 2
		s.paragraph("A fault's bar is from its begin to its end; a leader's is the time without one, until the one that it names was seen; a restart's is from a process's end until the next was ready.", 2, words{fill: dimInk})
	}
	a.list(listed)
	return s.svg("Timeline", summary, x.Origin)
}
