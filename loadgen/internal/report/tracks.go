package report

import (
	"fmt"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// track is a row of bars on the time axis: faults, who leads, restarts.
type track struct {
	Name, Tells string
	Rows        int
	Bars        []trackBar
}

// trackBar is a stretch of time. X, Y and W are in the coordinates of the
// track's drawing, in which a row is ten high; Left is in percent, for its label.
type trackBar struct {
	Class, X, W string
	Y, Row      int
	Left, Text  string // Text is empty where there is no room for it
	Title       string

	name           string  // Text, whether or not there is room for it
	from, to, room float64 // in the coordinates of a plot: the bar, and up to where its row is free
}

// faultsTrack is the name of the track that faults are on.
const faultsTrack = "Faults"

// needs is the room of the bar's words, in the coordinates of a plot.
func (b trackBar) needs() float64 { return 9*float64(textWidth(b.Text)) + 12 }

// within tells whether the words stand in the bar, not behind it.
func (b trackBar) within() bool { return b.to-b.from >= b.needs() }

// Height of the drawing.
func (t track) Height() int { return 10 * t.Rows }

const (
	// mostRows of a track: more are drawn over each other in the last one.
	mostRows = 6
	// leastBar is the width at which a bar can be seen.
	leastBar = 3.0
)

// layTracks puts what happened on the page's axis.
func (p *page) layTracks(rec *result.Recovery) {
	if rec == nil {
		return
	}
	faults := track{Name: faultsTrack, Tells: "From begin to end. A line: a fault without length."}
	var ends []time.Time
	for _, f := range rec.Faults {
		end := p.grid.end()
		if f.End != nil {
			end = *f.End
		}
		title := fmt.Sprintf("%s, from %s, for %s", faultName(f), clock(p.grid.at(f.Begin)), format(scenario.Seconds, end.Sub(f.Begin).Seconds()))
		p.addBar(&faults, &ends, "fault", f.Begin, end, faultName(f), title)
	}
	leads := map[string]*track{}
	var order []string
	for _, h := range rec.Handovers {
		t := leads[h.Of]
		if t == nil {
			t = &track{Name: leadTitle(h.Of), Tells: "Marked when the new holder was seen; the bar is the time without one."}
			leads[h.Of] = t
			order = append(order, h.Of)
		}
		from, took := h.At, "no known loss"
		if h.Lost != nil {
			from, took = *h.Lost, "failover "+optional(h.Failover)
		}
		title := fmt.Sprintf("%s: %s to %s at %s, %s", clean(h.Of), clean(h.From), clean(h.To), clock(p.grid.at(h.At)), took)
		var ends []time.Time
		p.addBar(t, &ends, "lead", from, h.At, "to "+clean(h.To), title)
	}
	restarts := track{Name: "Restarts", Tells: "From a process's end until the next is ready."}
	ends = nil
	for _, r := range rec.Restarts {
		from, to := r.Exited, r.Ready
		end := p.grid.end()
		if from == nil {
			from = to
		}
		if to != nil {
			end = *to
		}
		title := fmt.Sprintf("%s ended at %s, down %s", clean(r.Component), clock(p.grid.at(*from)), optional(r.Down))
		p.addBar(&restarts, &ends, "restart", *from, end, clean(r.Component), title)
	}
	all := []track{faults}
	for _, of := range order {
		all = append(all, *leads[of])
	}
	for _, t := range append(all, restarts) {
		if len(t.Bars) > 0 {
			t.label()
			p.Tracks = append(p.Tracks, t)
		}
	}
}

func leadTitle(of string) string {
	if of == "etcd" {
		return "etcd leader"
	}
	return clean(of) + " lease"
}

// addBar puts a bar in the first row where it has room.
func (p *page) addBar(t *track, ends *[]time.Time, class string, from, to time.Time, text, title string) {
	row := 0
	for row < len(*ends) && row < mostRows-1 && (*ends)[row].After(from) {
		row++
	}
	if row == len(*ends) {
		*ends = append(*ends, to)
	}
	(*ends)[row] = to
	t.Rows = max(t.Rows, row+1)
	left, right := p.grid.fraction(from), p.grid.fraction(to)
	width := max((right-left)*plotWidth, leastBar)
	t.Bars = append(t.Bars, trackBar{
		Class: class, X: coordinate(min(left*plotWidth, plotWidth-leastBar)), W: coordinate(width), Y: 10*row + 1, Row: row,
		Text: text, Title: title, name: text, from: left * plotWidth, to: left*plotWidth + width,
	})
}

// label places each bar's name in it, or behind it where there is room; the
// titles and the tables have those that are left out.
func (t *track) label() {
	for i := range t.Bars {
		b := &t.Bars[i]
		b.room = plotWidth
		for _, other := range t.Bars {
			if other.Row == b.Row && other.from > b.from {
				b.room = min(b.room, other.from)
			}
		}
		switch {
		case b.within():
			b.Left = percentAt(b.from / plotWidth)
		case b.room-b.to >= b.needs():
			b.Left = percentAt(b.to / plotWidth)
		default:
			b.Text = ""
		}
	}
}
