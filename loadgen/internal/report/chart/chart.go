package chart

import (
	"fmt"
	"math"
	"strings"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Chart is lines over the time of a run, with what they tell. The fields up to
// LevelText are given; Draw makes the others. Its JSON is what a script needs to draw it.
type Chart struct {
	ID        string        `json:"-"`
	Title     string        `json:"-"`
	Tells     string        `json:"-"`
	MovesWith string        `json:"-"` // the faults and actions that it shows first
	Key       string        `json:"-"` // the key metric it shows
	Unit      scenario.Unit `json:"unit"`
	Log       bool          `json:"log,omitempty"` // a logarithmic axis
	Dips      bool          `json:"-"`             // low values are the news
	Missing   string        `json:"-"`             // why there is nothing to draw
	Note      string        `json:"-"`
	Level     float64       `json:"level,omitempty"` // worth knowing, drawn as a line with its reason; 0: none
	LevelText string        `json:"-"`

	Series  []Line `json:"series"`
	Ticks   []Mark `json:"-"` // of the vertical axis
	Guide   *Mark  `json:"-"` // of the level, where it is in reach
	Peak    string `json:"-"`
	Where   string `json:"-"`
	Long    bool   `json:"-"` // the names need a line each
	Summary string `json:"-"`
	scale   Scale
}

// Mark is a position in percent with its label.
type Mark struct{ At, Label string }

// Draw puts lines, the highest first, into the chart. when names a point of the
// axis.
func (d *Chart) Draw(lines []Line, axis Grid, when func(point int) string) {
	colour(lines)
	d.scale = d.scaleOf(lines)
	for i := range lines {
		lines[i].Path, lines[i].Dots = path(lines[i].Values, d.scale)
	}
	d.Series = lines
	for _, t := range d.scale.Ticks {
		d.Ticks = append(d.Ticks, Mark{PercentAt(d.scale.y(t) / plotHeight), tickLabel(d.Unit, t)})
	}
	if d.Level > 0 && d.Level >= d.scale.Low && d.Level <= d.scale.High {
		d.Guide = &Mark{PercentAt(d.scale.y(d.Level) / plotHeight), d.LevelText}
	}
	top := lines[0]
	d.Peak = "Figures: peaks"
	switch {
	case d.Dips:
		// What counts is where it ended: a peak of Ready nodes is no news.
		d.Peak = "Figures: at the end"
	case top.Peak > 0:
		d.Peak = "Peak " + Format(d.Unit, top.Peak)
		d.Where = "at " + when(top.PeakAt)
		if len(lines) > 1 {
			d.Where = "(" + top.Name + ") " + d.Where
		}
	}
	for _, l := range lines {
		d.Long = d.Long || len(lines) == 1 || TextWidth(l.Name)+TextWidth(l.Figure) > 14
	}
	d.Summary = fmt.Sprintf("%s. %d series over %s. %s.", d.Title, len(lines), Clock(axis.Seconds()), strings.TrimSpace(d.Peak+" "+d.Where))
}

func (d *Chart) scaleOf(lines []Line) Scale {
	low, high := math.Inf(1), 0.0
	for _, l := range lines {
		for _, v := range l.Values {
			if !math.IsNaN(v) && (v > 0 || !d.Log) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	// A level is worth the room when the values come near it.
	reach := map[bool]float64{true: 20, false: 2.5}[d.Log]
	if d.Level > high && d.Level <= high*reach {
		high = d.Level * 1.05
	}
	if d.Log && d.Level > 0 && d.Level < low && d.Level*reach >= low {
		low = d.Level
	}
	return newScale(low, high, d.Log, d.Unit)
}

// ID is the address of a chart on the page, from its name.
func ID(name string) string { return "chart-" + name }

// Slug makes a name of a title: lower-case letters and digits, joined by dashes.
func Slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(title, "'", "")), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

// Name is the chart's address without what all share.
func (d Chart) Name() string { return strings.TrimPrefix(d.ID, ID("")) }
