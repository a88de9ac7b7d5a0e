package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/run"
)

// The minimum size of a terminal that can show the page.
const (
	minColumns = 80
	minRows    = 24
)

// maxPoints is the maximum number of points in a chart: one point per second for a quarter of an hour.
const maxPoints = 900

// point holds the values of all charts for one second: rates per second, the p99 latency in seconds, and the numbers of
// nodes, pods and watches.
type point struct{ offered, achieved, p99, nodes, pods, watches float64 }

// pageModel is the state of the page that shows a run on the terminal. It does no I/O: callers pass snapshots and steps
// to it and get lines of text.
type pageModel struct {
	began    time.Time
	url      string // URL of the web page; empty without --web
	snapshot run.Snapshot
	points   []point // the newest points, at most maxPoints
	dropped  int     // number of older points that were dropped
	last     time.Time
	steps    []string
	help     bool
	said     string // message about the effect of the last pressed key
	colours  bool
}

// take updates the page with a snapshot. It adds a point to the charts if the last point is over half a second old.
func (m *pageModel) take(s run.Snapshot, now time.Time) {
	m.snapshot = s
	if now.Sub(m.last) < time.Second/2 {
		return
	}
	m.last = now
	m.points = append(m.points, point{
		s.Offered, s.Achieved, s.P99.Seconds(), float64(s.NodesReady), float64(s.PodsReady), float64(s.WatchesOpen),
	})
	if over := len(m.points) - maxPoints; over > 0 {
		m.points = slices.Delete(m.points, 0, over)
		m.dropped += over
	}
}

func (m *pageModel) frame(columns, rows int, now time.Time) []string {
	columns, rows = max(columns, 20), max(rows, 8) // the user may make the terminal smaller than the minimum
	head := []line{m.title(columns, now), m.phases(columns), nil}
	foot := line{{m.keys(), ""}, {m.said, bold}}
	var middle []line
	if m.help {
		middle = helpLines()
	} else {
		middle = m.charts(columns, rows-10)
	}
	middle = append(middle, m.faults(), m.conditions())
	steps := max(0, rows-len(head)-len(middle)-1)
	shown := m.steps[max(0, len(m.steps)-steps):]
	for i := range steps {
		if i < len(shown) {
			middle = append(middle, line{{clean(shown[i]), dim}})
		} else {
			middle = append(middle, nil)
		}
	}
	all := append(append(head, middle...), foot)
	if over := len(all) - rows; over > 0 { // drop lines above the last line, which lists the keys
		all = append(all[:max(0, rows-1)], foot)
	}
	var text []string
	for _, l := range all {
		text = append(text, l.text(columns, m.colours))
	}
	return text
}

func (m *pageModel) title(columns int, now time.Time) line {
	s := m.snapshot
	does := "running " + run.Clock(now.Sub(m.began))
	if s.Paused > 0 {
		does = "LOAD PAUSED for " + run.Clock(s.Paused) + " (p resumes)"
	}
	text := " loadgen run " + clean(s.Scenario) + " · " + does
	if room := columns - len([]rune(text)); room > 0 {
		text += strings.Repeat(" ", room)
	}
	return line{{text, inverse}}
}

// phases returns one line with the names of the scenario's phases. If the names do not fit, it omits the first ones, but
// never the current phase.
func (m *pageModel) phases(columns int) line {
	var all line
	present := 0
	for i, p := range m.snapshot.Phases {
		name := clean(p.Name)
		switch {
		case p.Now:
			present = i
			text := fmt.Sprintf("▶ %s %s/%s", name, run.Clock(m.snapshot.Elapsed), run.Clock(p.Length))
			if p.Until != "" {
				text += " until " + clean(p.Until)
			}
			all = append(all, span{text, bold})
		case p.Took > 0:
			present = i
			text := fmt.Sprintf("✓ %s %s", name, run.Clock(p.Took))
			switch {
			case p.EndedEarly:
				text += " ended early"
			case p.Paused:
				text += " paused"
			}
			all = append(all, span{text, ""})
		default:
			all = append(all, span{"· " + name, dim})
		}
	}
	from := 0
	for from < present && len([]rune(joined(all[from:present+1]).plain())) > columns-2 {
		from++
	}
	shown := joined(all[from:])
	if from > 0 {
		shown = append(line{{"… ", ""}}, shown...)
	}
	return shown
}

// joined returns the parts of a line, separated by spaces.
func joined(all line) (out line) {
	for i, s := range all {
		if i > 0 {
			s.text = "  " + s.text
		}
		out = append(out, s)
	}
	return out
}

func (m *pageModel) faults() line {
	if len(m.snapshot.Faults) == 0 {
		return line{{"faults      none active", dim}}
	}
	return line{{"faults      ", ""}, {clean(strings.Join(m.snapshot.Faults, " · ")), bold}}
}

// conditions returns a line with the number of gates that judge the run, and the conditions that end the run early.
func (m *pageModel) conditions() line {
	gates := fmt.Sprintf("%d gates are judged at the end", m.snapshot.Gates)
	switch m.snapshot.Gates {
	case 0:
		gates = "no gate"
	case 1:
		gates = "one gate is judged at the end"
	}
	out := line{{"conditions  " + gates, ""}}
	for _, c := range m.snapshot.Stops {
		text := " · ends early on " + clean(c.Text)
		if c.Blind != "" {
			text += " (no data yet: " + clean(c.Blind) + ")"
		}
		out = append(out, span{text, ""})
	}
	return out
}

func (m *pageModel) keys() string {
	pause := "p pause load"
	if m.snapshot.Paused > 0 {
		pause = "p resume load"
	}
	return pause + "   n end phase   q end run   ? help   "
}

func helpLines() []line {
	var all []line
	for _, text := range []string{
		"  p          pause or resume the load. Requests in flight finish; phases and",
		"             faults continue; skipped load is not sent later. Gates of a phase",
		"             in which load was paused are not judged (exit 3).",
		"  n          end the current phase and begin the next. Gates over the ended",
		"             phase are not judged (exit 3).",
		"  q, Ctrl-C  end the run and write the report. After a second Ctrl-C the run",
		"             does not wait until all objects are removed.",
		"  ?          show this help, or the charts again",
		"",
		"  --plain shows lines instead of this page.",
		"",
	} {
		all = append(all, line{{text, ""}})
	}
	return all
}

// charts returns the charts, two in each row, in at most `rows` lines. The last line gives the time that a column
// covers.
func (m *pageModel) charts(columns, rows int) []line {
	all := m.barCharts()
	across := (len(all) + 1) / 2
	width := (columns - 2) / 2
	high := min(max((rows-1)/across-1, 1), 10)
	step := m.step(width)
	var out []line
	for i := 0; i < len(all); i += 2 {
		left := all[i].lines(m, width, high, step)
		var right []line
		if i+1 < len(all) {
			right = all[i+1].lines(m, width, high, step)
		}
		for j := range left {
			row := left[j].fit(width)
			if right != nil {
				row = append(append(row, span{"  ", ""}), right[j]...)
			}
			out = append(out, row)
		}
	}
	caption := fmt.Sprintf("the last %s, %d s per column", run.Clock(time.Duration(len(m.points))*time.Second), step)
	if m.url != "" {
		caption += " · " + m.url
	}
	return append(out, line{{caption, dim}})
}

// step returns the smallest number of seconds per column with which all points fit into a chart of the given width.
func (m *pageModel) step(width int) int {
	for _, step := range []int{1, 2, 5, 10, 15, 30} {
		if (len(m.points)+step-1)/step < width {
			return step
		}
	}
	return 60
}

// barChart shows values over time as bars. If behind is not nil, its values are shown in a light style behind the bars.
type barChart struct {
	title  string
	value  func(point) float64
	behind func(point) float64
	dips   bool // each column shows the smallest value of its points, because low values matter
	format func(float64) string
}

func (m *pageModel) barCharts() []barChart {
	s := m.snapshot
	any := func(of func(point) float64) bool {
		return slices.ContainsFunc(m.points, func(p point) bool { return of(p) > 0 })
	}
	watches := func(p point) float64 { return p.watches }
	all := []barChart{
		{
			title: fmt.Sprintf("requests/s  %s of %s offered", short3(s.Achieved), short3(s.Offered)),
			value: func(p point) float64 { return p.achieved }, behind: func(p point) float64 { return p.offered }, format: short3,
		},
		{title: "p99  " + seconds3(s.P99.Seconds()), value: func(p point) float64 { return p.p99 }, format: seconds3},
	}
	if s.Nodes > 0 {
		all = append(all, barChart{title: fmt.Sprintf("nodes Ready  %d of %d", s.NodesReady, s.Nodes), value: func(p point) float64 { return p.nodes }, dips: true, format: short3})
	}
	if pods := func(p point) float64 { return p.pods }; s.PodsWanted > 0 || any(pods) {
		all = append(all, barChart{title: fmt.Sprintf("pods Ready  %d of %d", s.PodsReady, s.PodsWanted), value: pods, dips: true, format: short3})
	}
	if s.WatchesOpen > 0 || any(watches) {
		all = append(all, barChart{title: fmt.Sprintf("watches open  %d, %d events", s.WatchesOpen, s.Delivered), value: watches, dips: true, format: short3})
	}
	return all[:min(len(all), 4)]
}

// lines returns the chart as lines: first the title and the maximum of the scale, then the bars.
func (c barChart) lines(m *pageModel, width, high, step int) []line {
	values := m.column(c.value, step, width, c.dips)
	var behind []float64
	top := slices.Max(append(values, 0))
	if c.behind != nil {
		behind = m.column(c.behind, step, width, c.dips)
		top = max(top, slices.Max(append(behind, 0)))
	}
	scale := ""
	if top > 0 {
		scale = "max " + c.format(top)
	}
	title := []rune(c.title)
	title = title[:min(len(title), max(0, width-len([]rune(scale))-1))]
	gap := max(1, width-len(title)-len([]rune(scale)))
	out := []line{{{string(title), bold}, {strings.Repeat(" ", gap) + scale, dim}}}
	for _, row := range bars(values, behind, top, high) {
		out = append(out, line{{row, ""}})
	}
	return out
}

// column groups the points into columns of `step` seconds, and returns the values of the last `width` columns. The
// value of a column is the largest value of its points, or the smallest value if `smallest` is true.
func (m *pageModel) column(of func(point) float64, step, width int, smallest bool) []float64 {
	var all []float64
	group := -1
	for i, p := range m.points {
		v := of(p)
		if g := (m.dropped + i) / step; g != group {
			group = g
			all = append(all, v)
		} else if last := &all[len(all)-1]; v > *last != smallest {
			*last = v
		}
	}
	return all[max(0, len(all)-width):]
}

// blocks are the characters for a bar with a height of 0 to 8 eighths of a line.
const blocks = " ▁▂▃▄▅▆▇█"

// bars draws each value as a column of blocks, on a scale from 0 to top. It returns `high` rows, the highest row first.
// If behind is not nil, bars draws its values in a light style behind the bars.
func bars(values, behind []float64, top float64, high int) []string {
	eighths := func(v float64) int {
		if top <= 0 || v <= 0 {
			return 0
		}
		return max(1, int(math.Round(v/top*float64(high*8))))
	}
	block := []rune(blocks)
	rows := make([]string, high)
	for r := range rows {
		base := (high - 1 - r) * 8
		var b strings.Builder
		for i, v := range values {
			part := min(max(eighths(v)-base, 0), 8)
			if part == 0 && behind != nil && eighths(behind[i])-base >= 4 {
				b.WriteRune('░')
				continue
			}
			b.WriteRune(block[part])
		}
		rows[r] = b.String()
	}
	return rows
}

// short3 formats a number with about three digits.
func short3(v float64) string {
	switch {
	case v >= 99_950:
		return fmt.Sprintf("%.0fk", v/1000)
	case v >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func seconds3(v float64) string {
	d := time.Duration(v * float64(time.Second))
	for _, digit := range []time.Duration{time.Second, 100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond, 100 * time.Microsecond, 10 * time.Microsecond} {
		if d >= 100*digit {
			return d.Round(digit).String()
		}
	}
	return d.Round(time.Microsecond).String()
}
