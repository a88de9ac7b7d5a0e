package chart

import (
	"cmp"
	"slices"
	"time"

	"github.com/stormglass/stormglass/internal/terminal"
)

// Timeline is the time axis of a run on a page or in a picture. It has phases and marks for actions and events. Its
// tracks show faults, leaders and restarts as bars.
type Timeline struct {
	Grid
	Bands     []Band
	Events    []Event
	TimeTicks []Mark
	Tracks    []Track
	Origin    string // text that names the run; only pictures in files show it
}

// Band is a phase on the time axis. Left and Width are in percent of the axis, X and W in the coordinates of a plot.
type Band struct {
	Name, Took, Left, Width, X, W string
	Odd, Fault, Narrow            bool

	From, To float64 // start and end of the phase as positions on the axis, from 0 to 1
}

// Event is a numbered vertical mark on the time axis. The list below the axis explains it.
type Event struct {
	N                         int
	Left, X                   string
	Lane                      int
	Kind, Name, Detail, Clock string
	Fault                     bool

	At  float64 // position on the axis, from 0 to 1
	Bar bool    // whether a bar on a track also shows the event
}

// faults returns the track of faults, or false if the run had no faults.
func (x *Timeline) faults() (Track, bool) {
	if len(x.Tracks) > 0 && x.Tracks[0].Name == FaultsTrack {
		return x.Tracks[0], true
	}
	return Track{}, false
}

// Lanes returns the number of lanes (rows) that the marks of the events need.
func (x *Timeline) Lanes() int {
	n := 0
	for _, e := range x.Events {
		n = max(n, e.Lane+1)
	}
	return n
}

// Track holds the bars of one kind on the time axis: faults, leaders or restarts. It has at least one row.
type Track struct {
	Name, Tells string
	Rows        int
	Bars        []trackBar

	ends []time.Time // end of the last bar of each row
}

// trackBar is a bar on a track. X, Y and W are in the coordinates of the track's drawing, where a row is 10 high. Left
// is the position of the label in percent.
type trackBar struct {
	Class, X, W string
	Y, Row      int
	Left, Text  string // position and text of the label; empty if the text does not fit
	Title       string

	name           string  // the text, even if it does not fit
	from, to, room float64 // start and end of the bar, and end of the free room after it, in the coordinates of a plot
}

// FaultsTrack is the name of the track of faults.
const FaultsTrack = "Faults"

// needs returns the width that the text of the bar takes, in the coordinates of a plot.
func (b trackBar) needs() float64 { return 9*float64(terminal.TextWidth(b.Text)) + 12 }

// within reports whether the text fits inside the bar.
func (b trackBar) within() bool { return b.to-b.from >= b.needs() }

// Height returns the height of the track's drawing, in its own coordinates.
func (t Track) Height() int { return 10 * t.Rows }

const (
	// maxRows is the maximum number of rows of a track. If all rows are taken, bars overlap in the last row.
	maxRows = 6
	// minBar is the minimum width of a bar. A narrower bar would be hard to see.
	minBar = 3.0
)

// AddBar adds a bar to a track, in the first row in which it overlaps no other bar.
func (x *Timeline) AddBar(t *Track, class string, from, to time.Time, text, title string) {
	row := 0
	for row < len(t.ends) && row < maxRows-1 && t.ends[row].After(from) {
		row++
	}
	if row == len(t.ends) {
		t.ends = append(t.ends, to)
	}
	t.ends[row] = to
	t.Rows = max(t.Rows, row+1)
	left, right := x.Grid.Fraction(from), x.Grid.Fraction(to)
	width := max((right-left)*PlotWidth, minBar)
	t.Bars = append(t.Bars, trackBar{
		Class: class, X: Coordinate(min(left*PlotWidth, PlotWidth-minBar)), W: Coordinate(width), Y: 10*row + 1, Row: row,
		Text: text, Title: title, name: text, from: left * PlotWidth, to: left*PlotWidth + width,
	})
}

// Label places the name of each bar inside the bar or, if it does not fit there, after the bar. It leaves out names
// that do not fit in either place; the titles of the bars and the tables have all names.
func (t *Track) Label() {
	order := make([]*trackBar, len(t.Bars))
	for i := range t.Bars {
		order[i] = &t.Bars[i]
	}
	slices.SortStableFunc(order, func(a, b *trackBar) int { return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.from, b.from)) })
	for i, b := range slices.Backward(order) {
		b.room = PlotWidth
		if i+1 < len(order) && order[i+1].Row == b.Row {
			next := order[i+1]
			b.room = min(PlotWidth, next.from)
			if next.from == b.from {
				b.room = next.room
			}
		}
		switch {
		case b.within():
			b.Left = PercentAt(b.from / PlotWidth)
		case b.room-b.to >= b.needs():
			b.Left = PercentAt(b.to / PlotWidth)
		default:
			b.Text = ""
		}
	}
}
