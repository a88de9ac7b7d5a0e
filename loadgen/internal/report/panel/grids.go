package panel

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// table shows the last value of each series. The columns are the labels in alphabetical
// order, as in Grafana, and then the value.
func (out *picture) table(answers []answer) {
	columns := map[string]bool{}
	type row struct {
		labels map[string]string
		value  float64
	}
	var rows []row
	for _, a := range answers {
		for _, s := range a.series {
			if len(s.Points) == 0 {
				continue
			}
			rows = append(rows, row{s.Labels, s.Points[len(s.Points)-1].V})
			for l := range s.Labels {
				columns[l] = true
			}
		}
	}
	slices.SortStableFunc(rows, func(x, y row) int {
		return cmp.Or(cmp.Compare(y.value, x.value), cmp.Compare(fmt.Sprint(x.labels), fmt.Sprint(y.labels)))
	})
	if len(rows) > maxRows {
		out.Note = fmt.Sprintf("The first %d of %d rows are shown.", maxRows, len(rows))
		rows = rows[:maxRows]
	}
	var shown []string
	for _, c := range append(slices.Sorted(maps.Keys(columns)), "Value") {
		if !slices.Contains(out.Hidden, c) {
			shown = append(shown, c)
			out.Head = append(out.Head, cmp.Or(out.Renamed[c], terminal.Clean(c)))
		}
	}
	for _, r := range rows {
		var texts []string
		for _, c := range shown {
			if c == "Value" {
				texts = append(texts, chart.Grafana(out.Unit, r.value))
			} else {
				texts = append(texts, terminal.Clean(r.labels[c]))
			}
		}
		out.Rows = append(out.Rows, texts)
	}
}

const (
	// maxColumns is the maximum number of columns of a heatmap: readers cannot distinguish narrower cells.
	maxColumns = 50
	shades     = 5
)

// heatmap draws a histogram over time: a row for each bucket and a column for each interval of time. Cells with more
// observations have a stronger colour. The counts in the results are cumulative in le.
func (out *picture) heatmap(answers []answer, a artist) {
	type bucket struct {
		edge   float64
		counts []float64
	}
	wide := (a.points + maxColumns - 1) / maxColumns // number of points in a column
	columns := (a.points + wide - 1) / wide
	var all []bucket
	for _, s := range answers[0].series {
		edge, err := strconv.ParseFloat(s.Labels["le"], 64)
		if err != nil {
			continue
		}
		b := bucket{edge, make([]float64, columns)}
		for i, v := range a.sample(s.Points) {
			if !math.IsNaN(v) {
				b.counts[i/wide] += v
			}
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(x, y bucket) int { return cmp.Compare(x.edge, y.edge) })
	most := 0.0
	for i := len(all) - 1; i > 0; i-- {
		for j := range all[i].counts {
			all[i].counts[j] = max(all[i].counts[j]-all[i-1].counts[j], 0)
			most = max(most, all[i].counts[j])
		}
	}
	all = used(all, func(b bucket) bool { return slices.Max(b.counts) > 0 })
	if len(all) == 0 || most == 0 {
		out.Empty = "Nothing was observed."
		return
	}
	paths := make([]string, shades)
	for i, b := range all {
		y, below := high*(len(all)-1-i)/len(all), high*(len(all)-i)/len(all)
		for j, n := range b.counts {
			if n < 0.5 {
				continue
			}
			// The shade grows with the square root, so that a few slow requests are visible among many quick ones.
			shade := min(int(math.Sqrt(n/most)*shades), shades-1)
			across := min(wide, max(a.points-1, 1)-j*wide) // the drawing ends at its last point
			if across <= 0 {
				continue
			}
			paths[shade] += fmt.Sprintf("M%d %dh%dv%dh-%dz", j*wide, y, across, below-y, across)
		}
		if i%max(1, (len(all)+5)/6) == 0 {
			label := "≤ " + chart.Grafana(answers[0].panel.Unit, b.edge)
			if math.IsInf(b.edge, 1) && i > 0 {
				label = "> " + chart.Grafana(answers[0].panel.Unit, all[i-1].edge)
			}
			out.Ticks = append(out.Ticks, tick{y, label})
		}
	}
	for shade, p := range paths {
		if p != "" {
			out.Cells = append(out.Cells, cells{shade, p})
		}
	}
	out.Note = "A stronger colour means more observations in that time."
}

// used returns `all` without the leading and trailing elements for which `has` returns false.
func used[B any](all []B, has func(B) bool) []B {
	first := slices.IndexFunc(all, has)
	if first < 0 {
		return nil
	}
	last := len(all)
	for !has(all[last-1]) {
		last--
	}
	return all[first:last]
}

// high is the height of a drawing in its coordinates. The width is the number of points minus one. The page stretches
// a drawing to fit. Coordinates are whole numbers to keep the page small; one unit is less than a pixel.
const high = 200

// newAxis returns an axis with round ticks that covers the values of a panel.
func newAxis(p dashboards.Panel, values [][]float64) chart.Scale {
	low, top := math.Inf(1), math.Inf(-1)
	for _, line := range values {
		for _, v := range line {
			if !math.IsNaN(v) && (v > 0 || !p.Log) {
				low, top = min(low, v), max(top, v)
			}
		}
	}
	if p.Log && top > 0 {
		if p.Min != 0 {
			low = max(low, min(p.Min, top/10))
		}
		return logAxis(low, top)
	}
	if !p.Log || p.Min != 0 {
		low = min(low, p.Min)
	}
	if high := p.SoftMax(); high != 0 {
		top = max(top, high)
	}
	if p.Max != 0 {
		top = p.Max // higher values are drawn at the edge, as in Grafana; the legend shows them
	}
	if !(top > low) { // no values, or only zeros
		low = min(low, 0)
		if math.IsInf(low, 0) {
			low = 0
		}
		top = max(top, 1)
		return chart.Scale{Low: low, High: top, Ticks: []float64{low, top}}
	}
	step := chart.RoundStep((top - low) / 4)
	if p.Unit == "short" && whole(values) {
		step = max(step, 1) // counts, such as of leader changes, are whole numbers
	}
	if p.Unit == "bytes" { // ticks are round in units of 1024
		unit := math.Pow(1024, math.Floor(math.Log((top-low)/4)/math.Log(1024)))
		step = chart.RoundStep((top-low)/4/unit) * unit
	}
	a := chart.Scale{Low: math.Floor(low/step) * step, High: math.Ceil(top/step-1e-9) * step}
	for v := a.Low; v <= a.High+step/2; v += step {
		a.Ticks = append(a.Ticks, v)
	}
	return a
}

func whole(lines [][]float64) bool {
	for _, line := range lines {
		for _, v := range line {
			if !math.IsNaN(v) && v != math.Trunc(v) {
				return false
			}
		}
	}
	return true
}

// logAxis returns a logarithmic axis with a tick at each power of ten, or at every other power if there are many.
func logAxis(low, top float64) chart.Scale {
	first, last := int(math.Floor(math.Log10(low)+1e-9)), int(math.Ceil(math.Log10(top)-1e-9))
	if last == first {
		last++
	}
	a := chart.Scale{Low: math.Pow10(first), High: math.Pow10(last), Log: true}
	for i := first; i <= last; i += max(1, (last-first+4)/5) {
		a.Ticks = append(a.Ticks, math.Pow10(i))
	}
	return a
}

// height returns a function that converts a value to its vertical position in a drawing, 0 at the top.
func height(s chart.Scale) func(v float64) int {
	return func(v float64) int { return int(math.Round(high * (1 - s.Share(v)))) }
}
