package panel

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
)

// table shows the last value of each series, with its labels as columns: in the
// alphabet's order, as Grafana has them, then the value.
func (out *picture) table(p dashboards.Panel, answers []answer) {
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
	if len(rows) > mostRows {
		out.Note = fmt.Sprintf("%d of %d rows.", mostRows, len(rows))
		rows = rows[:mostRows]
	}
	var shown []string
	for _, c := range append(slices.Sorted(maps.Keys(columns)), "Value") {
		if !p.Hidden[c] {
			shown = append(shown, c)
			out.Head = append(out.Head, cmp.Or(p.Renamed[c], chart.Clean(c)))
		}
	}
	for _, r := range rows {
		var texts []string
		for _, c := range shown {
			if c == "Value" {
				texts = append(texts, chart.Grafana(p.Unit, r.value))
			} else {
				texts = append(texts, chart.Clean(r.labels[c]))
			}
		}
		out.Rows = append(out.Rows, texts)
	}
}

const (
	// mostColumns of a heatmap: cells narrower than that cannot be told apart.
	mostColumns = 50
	shades      = 5
)

// heatmap draws buckets: a row for each, a column for each stretch of time, the
// stronger the more observations. Answers are cumulative in le.
func (out *picture) heatmap(answers []answer, a artist) {
	type bucket struct {
		edge   float64
		counts []float64
	}
	wide := (a.points + mostColumns - 1) / mostColumns // points of a column
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
			// By the root, as a few slow ones matter beside many quick ones.
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
	out.Note = "Stronger: more of them in that time."
}

// used cuts off what is empty at both ends.
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
