package chart

import (
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// ChartSVG draws a chart as an SVG file, with the phases and events of the run.
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
		line, dots := path(l.Values, d.scale, a.x1-a.x0, height)
		s.path(a.x0, top, line, colour, 1.8, dash)
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

// legend writes the names of the lines, in as many columns as fit.
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

// SVG draws the phases and events of a run, with faults, leaders and restarts as bars.
func (x *Timeline) SVG() []byte {
	const gap, least, maxLane = 4, 30, 260
	s := &sheet{}
	s.head("Timeline", "", "")
	lane := 0.0 // width of the widest track name
	for _, t := range x.Tracks {
		lane = max(lane, widthOf(t.Name, bodySize))
	}
	a := axis{s, x, sheetMargin + min(lane, maxLane) + 10, sheetWidth - sheetMargin}
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
		s.paragraph("Faults: each bar runs from the start to the end of a fault. Leaders: each bar is a time without a leader, until the named leader was seen. Restarts: each bar runs from the end of a process until its next process was ready.", 2, words{fill: dimInk})
	}
	a.list(listed)
	return s.svg("Timeline", summary, x.Origin)
}

// axis is the time axis of a run in a picture. x0 and x1 are its left and right ends.
type axis struct {
	*sheet
	time   *Timeline
	x0, x1 float64
}

// at returns the horizontal position of a point on the axis. share is 0 at the left end and 1 at the right end.
func (a axis) at(share float64) float64 { return a.x0 + share*(a.x1-a.x0) }

// plotted converts a horizontal coordinate of a plot (0 to PlotWidth) to a position in the picture.
func (a axis) plotted(x float64) float64 { return a.at(x / PlotWidth) }

func (a axis) phases() {
	const high = 18
	for _, b := range a.time.Bands {
		x, w := a.at(b.From), a.at(b.To)-a.at(b.From)
		fill, opacity := bandInk, 0.16
		switch {
		case b.Fault:
			fill, opacity = bandFault, 0.2
		case b.Odd:
			opacity = 0.32
		}
		a.rect(x, a.y, max(w-1.5, 1), high, fill, opacity)
		if w > 24 {
			a.text(x+5, a.y+13, fit(b.Name, smallSize, w-8), words{size: smallSize, bold: true})
		}
	}
	a.y += high + 3
}

// barHigh is the height of a row of bars, in pixels. minName is the minimum width for a shortened name of a bar.
const barHigh, minName = 17, 40

func (a axis) bars(t Track) {
	for _, b := range t.Bars {
		fill := map[string]string{"fault": faultInk, "lead": "#99488f", "restart": "#5c636e"}[b.Class]
		x, w, y := a.plotted(b.from), max(a.plotted(b.to)-a.plotted(b.from), 2.5), a.y+barHigh*float64(b.Row)
		a.rect(min(x, a.x1-w), y+1, w, barHigh-3, fill, 1)
		// A picture in a file has no tooltip for the name, so show at least a shortened name.
		in, after := w-8, a.plotted(b.room)-x-w-8
		switch {
		case max(in, after) < minName:
		case in >= widthOf(b.name, smallSize) || in >= after:
			a.text(x+5, y+12, fit(b.name, smallSize, in), words{size: smallSize, fill: paper})
		default:
			a.text(x+w+4, y+12, fit(b.name, smallSize, after), words{size: smallSize})
		}
	}
	a.y += barHigh * float64(t.Rows)
}

// maxListed is the maximum number of actions and events that a picture marks with a number and lists below its chart.
const maxListed = 8

// marks draws numbered marks for the first maxListed actions and events, except those that a bar shows. It returns the
// marked events, which the method list then explains below the chart.
func (a axis) marks() (listed []Event) {
	const high = 16
	lanes := 0
	for _, e := range a.time.Events {
		if e.Bar || len(listed) == maxListed {
			continue
		}
		e.N = len(listed) + 1
		listed = append(listed, e)
		lanes = max(lanes, e.Lane+1)
		x, y := min(max(a.at(e.At), a.x0+7), a.x1-7), a.y+high*float64(e.Lane)
		fill := eventInk
		if e.Fault {
			fill = faultInk
		}
		a.rect(x-7, y+1, 14, high-3, fill, 1)
		a.text(x, y+11.5, Number(float64(e.N), 1), words{size: 10, fill: paper, anchor: "middle", bold: true})
	}
	a.y += high * float64(lanes)
	return listed
}

// ground draws the phases, faults and marks behind a chart. y is the top of the chart.
func (a axis) ground(y, height float64) {
	for _, b := range a.time.Bands {
		if b.Odd {
			a.rect(a.at(b.From), y, a.at(b.To)-a.at(b.From), height, bandInk, 0.12)
		}
	}
	if t, ok := a.time.faults(); ok {
		for _, b := range t.Bars {
			a.rect(a.plotted(b.from), y, max(a.plotted(b.to)-a.plotted(b.from), 1), height, bandFault, 0.14)
		}
	}
	for _, e := range a.time.Events {
		switch x := a.at(e.At); {
		case e.Bar:
		case e.Fault:
			a.line(x, y, x, y+height, faultInk, 1.4, "")
		default:
			a.line(x, y, x, y+height, eventInk, 1, "3 3")
		}
	}
}

func (a axis) times() {
	whole := a.time.Grid.Seconds()
	for _, t := range TimeTicks(whole, 12) {
		share := 0.0
		if whole > 0 {
			share = t / whole
		}
		if share > .985 {
			break // the label would be cut off
		}
		a.text(a.at(share), a.y+15, Clock(t), words{size: smallSize, fill: dimInk, anchor: "middle"})
	}
	a.y += 20
}

// list explains the numbered marks below the chart: in one column, or in two columns if there are over three marks.
func (a axis) list(listed []Event) {
	columns := 1
	if len(listed) > 3 {
		columns = 2
	}
	width := (sheetWidth - 2*sheetMargin) / float64(columns)
	for i, e := range listed {
		what := Number(float64(e.N), 1) + "  " + e.Clock + "  " + e.Name
		if e.Detail != "" {
			what += ", " + e.Detail
		}
		a.text(sheetMargin+float64(i%columns)*width, a.y+13, fit(what, smallSize, width-8), words{size: smallSize, fill: dimInk})
		if i%columns == columns-1 || i == len(listed)-1 {
			a.y += 16
		}
	}
}

func (a axis) levels(s Scale, u scenario.Unit, y, height float64) {
	for _, t := range s.Ticks {
		at := y + s.y(t)*height/plotHeight
		a.line(a.x0, at, a.x1, at, gridInk, 1, "")
		a.text(a.x0-6, at+4, tickLabel(u, t), words{size: smallSize, fill: dimInk, anchor: "end"})
	}
}
