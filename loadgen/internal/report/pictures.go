package report

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Picture is a chart of a report that can stand alone.
type Picture struct {
	Name  string `json:"name"`  // lower-case words joined by dashes; of the page's address of the chart, after #chart-
	Title string `json:"title"` // for a person
	// Missing says why there is nothing to draw; empty: there is.
	Missing string `json:"missing,omitempty"`

	draw func() []byte
}

// SVG is the picture as a file of its own: it needs no style, font or script beside
// it. Nil where something is Missing.
func (p Picture) SVG() []byte {
	if p.draw == nil {
		return nil
	}
	return p.draw()
}

// Pictures are all charts of a run's report, in its order, without those of key
// metrics that only repeat them. They are made of what HTML makes its page of.
// An error: ctx ended.
func Pictures(ctx context.Context, r result.Result, timeline []result.Event, slots []samples.Slot, scenarioYAML []byte, src Source) ([]Picture, error) {
	p := newPage(ctx, r, timeline, slots, scenarioYAML, src)
	if err := ctx.Err(); err != nil {
		return nil, err // half of the charts would be missing
	}
	overview := Picture{Name: "timeline", Title: "Timeline", draw: p.timelinePicture}
	if len(p.Bands) == 0 {
		overview = Picture{Name: overview.Name, Title: overview.Title, Missing: "No phase was begun."}
	}
	all := []Picture{overview}
	for _, w := range p.Waterfalls {
		all = append(all, Picture{Name: w.name, Title: "Rollout: " + w.Title, draw: func() []byte { return p.waterfallPicture(w) }})
	}
	for _, s := range p.Sections {
		for _, c := range s.Charts {
			if s.Title == signalsTitle {
				c.Title = "Signal " + c.Title
			}
			all = append(all, Picture{Name: chartName(c), Title: c.Title, draw: func() []byte { return p.linesPicture(c) }})
		}
	}
	for _, s := range p.Sections {
		for _, c := range s.empty {
			all = append(all, Picture{Name: chartName(c), Title: c.Title, Missing: c.Missing})
		}
	}
	return all, nil
}

func chartName(c drawn) string { return strings.TrimPrefix(c.ID, chartID("")) }

// origin is where a picture is from.
func origin(r result.Result) string {
	parts := []string{"Stormglass", runName(r), r.Run.Started.UTC().Format("2006-01-02 15:04 UTC")}
	if v := clean(r.Run.Versions.Kubernetes); v != "" {
		parts = append(parts, "Kubernetes "+v)
	}
	if n := r.Measurements.Nodes; n != nil && n.Count > 0 {
		parts = append(parts, count(n.Count)+" simulated nodes")
	}
	return strings.Join(parts, " · ")
}

// linesPicture draws a chart over the run's time.
func (p *page) linesPicture(d drawn) []byte {
	const height = 230
	s := &sheet{}
	scaleNote := ""
	if d.Log {
		scaleNote = "log scale"
	}
	s.head(d.Title, scaleNote, d.Tells)
	a := axis{s, p, 78, sheetWidth - sheetMargin}
	a.phases()
	if t, ok := p.faults(); ok {
		a.bars(t)
	}
	listed := a.marks()
	top := s.y + 4
	a.ground(top, height)
	a.levels(d.scale, d.Unit, top, height)
	if d.Guide != nil {
		y := top + d.scale.y(d.guide)*height/plotHeight
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
	return s.svg(d.Title, d.Summary, p.origin)
}

// legend names the lines, in as many columns as there is room for.
func (a axis) legend(lines []line) {
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

// timelinePicture draws phases and what happened; faults, leaders and restarts as
// bars.
func (p *page) timelinePicture() []byte {
	const gap, least, mostLane = 4, 30, 260
	s := &sheet{}
	s.head("Timeline", "", "")
	lane := 0.0 // the widest name of a track
	for _, t := range p.Tracks {
		lane = max(lane, widthOf(t.Name, bodySize))
	}
	a := axis{s, p, sheetMargin + min(lane, mostLane) + 10, sheetWidth - sheetMargin}
	a.phases()
	listed := a.marks()
	top, height, summary := s.y, 0.0, fmt.Sprintf("%d phases. ", len(p.Bands))
	for _, t := range p.Tracks {
		height += float64(barHigh*t.Rows + 2*gap)
		summary += fmt.Sprintf("%s: %d. ", t.Name, len(t.Bars))
	}
	a.ground(top, max(height, least))
	for _, t := range p.Tracks {
		s.y += gap
		s.text(a.x0-8, s.y+12, fit(t.Name, bodySize, a.x0-8-sheetMargin), words{anchor: "end", bold: true})
		a.bars(t)
		s.y += gap
	}
	s.y = top + max(height, least)
	a.times()
	if len(p.Tracks) > 0 {
		s.y += 2
		s.paragraph("A fault's bar is from its begin to its end; a leader's is the time without one, until the one that it names was seen; a restart's is from a process's end until the next was ready.", 2, words{fill: dimInk})
	}
	a.list(listed)
	return s.svg("Timeline", summary, p.origin)
}

// waterfallPicture draws a rollout's hops.
func (p *page) waterfallPicture(w waterfall) []byte {
	const high = 24
	s := &sheet{}
	s.head("Rollout: "+w.Title, w.Where, "Each hop from its first piece to its last, since just before the change was sent.")
	a := axis{s, p, 130, sheetWidth - sheetMargin - 14}
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
	return s.svg("Rollout: "+w.Title, w.Summary, p.origin)
}

// ink of a hop's bar.
func (b hopBar) ink() string {
	colour, _ := seriesInk(btoi(b.Short))
	return colour
}
