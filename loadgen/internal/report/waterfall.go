package report

import (
	"fmt"

	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// waterfall is one rollout's way through the control plane: a bar for each hop,
// from its first piece to its last, in seconds since just before the change was
// sent.
type waterfall struct {
	ID, Title, Where string
	Note, Summary    string
	Bars             []hopBar
	Ticks            []mark

	name  string
	ticks []tick
}

// tick is a place on an axis.
type tick struct {
	share float64
	label string
}

// hopBar is the bar of a hop. X, Y and W are in the coordinates of the drawing, in
// which a row is ten high; X is empty where nothing arrived.
type hopBar struct {
	Name, Text, Title string
	X, W              string
	Y, Row            int
	Short             bool   // not all pieces arrived
	Left, Right       string // of the text, in percent; one of them, or none: there is no room

	from, to float64 // in the coordinates of a plot
	side     side
}

// side is where a bar's text has room.
type side int

const (
	nowhere side = iota
	behind
	inside
	before
)

const (
	// mostFalls are drawn; the table has all rollouts.
	mostFalls = 6
	// hopLetter and hopPad are the room that a text needs, in the coordinates of a
	// plot.
	hopLetter, hopPad = 9.5, 24
)

// Inside tells whether the text stands in the bar.
func (b hopBar) Inside() bool { return b.side == inside }

// Height of the drawing.
func (w waterfall) Height() int { return 10 * len(w.Bars) }

// Rems is the height on the page: as a track's rows.
func (w waterfall) Rems() string { return coordinate(1.5 * float64(len(w.Bars))) }

// waterfalls are the drawings of a run's rollouts, and how many are not drawn.
func waterfalls(all []rolled) (falls []waterfall, more int) {
	for _, r := range all[:min(len(all), mostFalls)] {
		falls = append(falls, newWaterfall(r))
	}
	return falls, len(all) - len(falls)
}

func newWaterfall(r rolled) waterfall {
	w := waterfall{ID: chartID(r.slug), name: r.slug, Title: r.Name, Where: "in phase " + r.Phase}
	longest := 0.0
	for _, h := range r.Hops {
		if h.Last != nil {
			longest = max(longest, *h.Last)
		}
	}
	axis := newScale(0, longest, false, scenario.Seconds)
	for _, t := range axis.ticks {
		at := tick{t / axis.high, tickLabel(scenario.Seconds, t)}
		w.ticks = append(w.ticks, at)
		w.Ticks = append(w.Ticks, mark{percentAt(at.share), at.label})
	}
	most, at := 0.0, ""
	for i, added := range addedBy(r.Hops) {
		w.Bars = append(w.Bars, newHopBar(r.Hops[i], i, r.Pods, axis.high))
		if added != nil && *added > most {
			most, at = *added, clean(r.Hops[i].Name)
		}
	}
	w.Summary = fmt.Sprintf("%s, %s: %d hops, the last piece after %s.", w.Title, w.Where, len(w.Bars), format(scenario.Seconds, longest))
	if at != "" {
		w.Note = fmt.Sprintf("Most was added at %s: %s.", at, format(scenario.Seconds, most))
	}
	return w
}

func newHopBar(h result.Hop, row int, pods int64, high float64) hopBar {
	b := hopBar{Name: clean(h.Name), Row: row, Y: 10*row + 1, Left: "0"}
	b.Short = h.Count < pods && h.Name != "api write" && h.Name != "replicaset" // these are no pods
	if h.First == nil || h.Last == nil {
		b.Text = "none arrived"
		b.Title, b.side = b.Name+": none arrived", behind
		return b
	}
	b.from, b.to = *h.First/high*plotWidth, *h.Last/high*plotWidth
	width := max(b.to-b.from, leastBar)
	b.X, b.W = coordinate(min(b.from, plotWidth-leastBar)), coordinate(width)
	b.Text = format(scenario.Seconds, *h.Last)
	if *h.First != *h.Last {
		b.Text = format(scenario.Seconds, *h.First) + " to " + b.Text
	}
	if h.Count != 1 {
		b.Text = count(h.Count) + ", " + b.Text
	}
	b.Title = b.Name + ": " + b.Text
	b.place(hopLetter*float64(textWidth(b.Text)) + hopPad)
	return b
}

// place finds room for a text that needs so much.
func (b *hopBar) place(needs float64) {
	b.Left = ""
	switch {
	case plotWidth-b.to >= needs:
		b.side, b.Left = behind, percentAt(b.to/plotWidth)
	case b.to-b.from >= needs:
		b.side, b.Left = inside, percentAt(b.from/plotWidth)
	case b.from >= needs:
		b.side, b.Right = before, percentAt(1-b.from/plotWidth)
	}
}
