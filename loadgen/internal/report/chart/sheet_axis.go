package chart

import "github.com/stormglass/stormglass/loadgen/scenario"

// axis is the time of a run across a sheet, from x0 to x1.
type axis struct {
	*sheet
	time   *Timeline
	x0, x1 float64
}

// at is where a share of the axis lies.
func (a axis) at(share float64) float64 { return a.x0 + share*(a.x1-a.x0) }

// plotted is where a place in a plot's coordinates lies.
func (a axis) plotted(x float64) float64 { return a.at(x / PlotWidth) }

// phases writes the strip of phases.
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

// barHigh is the height of a track's row, leastName the room that says anything of
// a bar's name.
const barHigh, leastName = 17, 40

// bars writes the rows of a track.
func (a axis) bars(t Track) {
	for _, b := range t.Bars {
		fill := map[string]string{"fault": faultInk, "lead": "#99488f", "restart": "#5c636e"}[b.Class]
		x, w, y := a.plotted(b.from), max(a.plotted(b.to)-a.plotted(b.from), 2.5), a.y+barHigh*float64(b.Row)
		a.rect(min(x, a.x1-w), y+1, w, barHigh-3, fill, 1)
		// There is nothing to point at on a sheet: a name that is cut off is better than none.
		in, after := w-8, a.plotted(b.room)-x-w-8
		switch {
		case max(in, after) < leastName:
		case in >= widthOf(b.name, smallSize) || in >= after:
			a.text(x+5, y+12, fit(b.name, smallSize, in), words{size: smallSize, fill: paper})
		default:
			a.text(x+w+4, y+12, fit(b.name, smallSize, after), words{size: smallSize})
		}
	}
	a.y += barHigh * float64(t.Rows)
}

// mostListed marks have their words on a sheet.
const mostListed = 8

// marks numbers what was done and what happened, but for what a bar shows.
func (a axis) marks() (listed []Event) {
	const high = 16
	lanes := 0
	for _, e := range a.time.Events {
		if e.Bar || len(listed) == mostListed {
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

// ground paints phases, faults and marks from y down.
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

// times writes the labels below.
func (a axis) times() {
	whole := a.time.Grid.Seconds()
	for _, t := range TimeTicks(whole, 12) {
		share := 0.0
		if whole > 0 {
			share = t / whole
		}
		if share > .985 {
			break // it would be cut off
		}
		a.text(a.at(share), a.y+15, Clock(t), words{size: smallSize, fill: dimInk, anchor: "middle"})
	}
	a.y += 20
}

// list writes the words of the marks, in two columns where there are many.
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

// levels writes the horizontal lines of a scale and their labels.
func (a axis) levels(s Scale, u scenario.Unit, y, height float64) {
	for _, t := range s.Ticks {
		at := y + s.y(t)*height/plotHeight
		a.line(a.x0, at, a.x1, at, gridInk, 1, "")
		a.text(a.x0-6, at+4, tickLabel(u, t), words{size: smallSize, fill: dimInk, anchor: "end"})
	}
}
