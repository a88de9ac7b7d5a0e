package chart

import "time"

// Timeline is the time of a run across a page or a picture: its phases, actions and
// events, and the tracks of what lasted.
type Timeline struct {
	Grid
	Bands     []Band
	Events    []Event
	TimeTicks []Mark
	Tracks    []Track
	Origin    string // what an independent picture says of its run
}

// Band is a phase on the time axis. Left and Width are in percent, X and W in
// the coordinates of a plot.
type Band struct {
	Name, Took, Left, Width, X, W string
	Odd, Fault, Narrow            bool

	From, To float64 // shares of the axis
}

// Event is a vertical mark with its number; the list below the ruler explains
// it.
type Event struct {
	N                         int
	Left, X                   string
	Lane                      int
	Kind, Name, Detail, Clock string
	Fault                     bool

	At  float64 // share of the axis
	Bar bool    // it is also on a track
}

// faults is the track of faults, if the run had any.
func (x *Timeline) faults() (Track, bool) {
	if len(x.Tracks) > 0 && x.Tracks[0].Name == FaultsTrack {
		return x.Tracks[0], true
	}
	return Track{}, false
}

// Lanes returns the number of lanes that the marks need.
func (x *Timeline) Lanes() int {
	n := 0
	for _, e := range x.Events {
		n = max(n, e.Lane+1)
	}
	return n
}

// Track is a row of bars on the time axis: faults, who leads, restarts.
type Track struct {
	Name, Tells string
	Rows        int
	Bars        []trackBar

	ends []time.Time // by row: when it is free
}

// trackBar is a stretch of time. X, Y and W are in the coordinates of the
// track's drawing, in which a row is ten high; Left is in percent, for its label.
type trackBar struct {
	Class, X, W string
	Y, Row      int
	Left, Text  string // Text is empty if it has no room
	Title       string

	name           string  // Text, also without room for it
	from, to, room float64 // in the coordinates of a plot: the bar, and the end of its free room
}

// FaultsTrack is the name of the track of faults.
const FaultsTrack = "Faults"

// needs returns the room for the bar's words, in the coordinates of a plot.
func (b trackBar) needs() float64 { return 9*float64(TextWidth(b.Text)) + 12 }

// within reports whether the words are in the bar, not after it.
func (b trackBar) within() bool { return b.to-b.from >= b.needs() }

// Height of the drawing.
func (t Track) Height() int { return 10 * t.Rows }

const (
	// mostRows is the maximum number of rows of a track: further bars overlap in the last row.
	mostRows = 6
	// leastBar is the width from which a bar is visible.
	leastBar = 3.0
)

// AddBar puts a bar in the first row where it has room.
func (x *Timeline) AddBar(t *Track, class string, from, to time.Time, text, title string) {
	row := 0
	for row < len(t.ends) && row < mostRows-1 && t.ends[row].After(from) {
		row++
	}
	if row == len(t.ends) {
		t.ends = append(t.ends, to)
	}
	t.ends[row] = to
	t.Rows = max(t.Rows, row+1)
	left, right := x.Grid.Fraction(from), x.Grid.Fraction(to)
	width := max((right-left)*PlotWidth, leastBar)
	t.Bars = append(t.Bars, trackBar{
		Class: class, X: Coordinate(min(left*PlotWidth, PlotWidth-leastBar)), W: Coordinate(width), Y: 10*row + 1, Row: row,
		Text: text, Title: title, name: text, from: left * PlotWidth, to: left*PlotWidth + width,
	})
}

// Label places each bar's name in it, or after it if there is room. The titles and tables
// have the names that are left out.
func (t *Track) Label() {
	for i := range t.Bars {
		b := &t.Bars[i]
		b.room = PlotWidth
		for _, other := range t.Bars {
			if other.Row == b.Row && other.from > b.from {
				b.room = min(b.room, other.from)
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
