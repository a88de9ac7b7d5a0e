package gate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

// keyMetric says how one of the four key metrics is read over the whole run.
type keyMetric struct {
	name  string
	label string // that tells its rows apart
	match string
	// counter: the rows are increases, not quantiles.
	counter bool
}

// keys are always all four, always in this order.
func keys() []keyMetric {
	return []keyMetric{
		{name: "etcd_disk_wal_fsync_duration_seconds", label: "instance", match: `job="etcd"`},
		// Watches and tunnels last as long as their clients like: no latency.
		{name: "apiserver_request_duration_seconds", label: "verb", match: `job="kube-apiserver", verb!~"WATCH|WATCHLIST|CONNECT"`},
		{name: "scheduler_scheduling_attempt_duration_seconds", label: "result", match: `job="kube-scheduler"`},
		{name: "etcd_server_leader_changes_seen_total", label: "instance", match: `job="etcd"`, counter: true},
	}
}

// keyMetrics reads the four key metrics from the first scrape to the last.
func keyMetrics(ctx context.Context, a *archive.Archive) ([]result.KeyMetric, error) {
	var all []result.KeyMetric
	start, end, missing, err := wholeRun(ctx, a)
	if err != nil {
		return nil, err
	}
	for _, k := range keys() {
		m := result.KeyMetric{Name: k.name, Rows: []result.KeyRow{}, Missing: missing}
		if missing == "" {
			if m.Rows, err = k.rows(ctx, a, start, end); err != nil {
				if ctx.Err() != nil {
					return nil, err
				}
				m.Missing = err.Error()
			} else if len(m.Rows) == 0 {
				m.Rows, m.Missing = []result.KeyRow{}, "no observation was recorded"
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// wholeRun is the time from the first scrape to the last.
func wholeRun(ctx context.Context, a *archive.Archive) (start, end time.Time, missing string, err error) {
	if a == nil {
		return start, end, "there is no archive of metrics", nil
	}
	if start, end, err = a.Bounds(ctx); err != nil {
		return start, end, err.Error(), ctx.Err()
	}
	return start, end, "", nil
}

func (k keyMetric) rows(ctx context.Context, a *archive.Archive, start, end time.Time) ([]result.KeyRow, error) {
	window := archive.Window(start, end)
	rows := map[string]*result.KeyRow{}
	row := func(s archive.Sample) *result.KeyRow {
		label := s.Labels[k.label]
		if rows[label] == nil {
			rows[label] = &result.KeyRow{Label: label}
		}
		return rows[label]
	}
	each := func(expr string, set func(*result.KeyRow, float64)) error {
		samples, err := a.Instant(ctx, expr, end)
		for _, s := range samples {
			if !math.IsNaN(s.V) && !math.IsInf(s.V, 0) {
				set(row(s), s.V)
			}
		}
		return err
	}
	if k.counter {
		err := each(fmt.Sprintf("round(sum by (%s) (increase(%s{%s}[%s])))", k.label, k.name, k.match, window),
			func(r *result.KeyRow, v float64) { r.Value, r.Count = &v, v })
		return sorted(rows), err
	}
	for q, set := range map[float64]func(*result.KeyRow, float64){
		0.5:  func(r *result.KeyRow, v float64) { r.P50 = &v },
		0.95: func(r *result.KeyRow, v float64) { r.P95 = &v },
		0.99: func(r *result.KeyRow, v float64) { r.P99 = &v },
	} {
		expr := fmt.Sprintf("histogram_quantile(%g, sum by (%s, le) (increase(%s_bucket{%s}[%s])))", q, k.label, k.name, k.match, window)
		if err := each(expr, set); err != nil {
			return nil, err
		}
	}
	counts, err := a.Instant(ctx, fmt.Sprintf("round(sum by (%s) (increase(%s_count{%s}[%s])))", k.label, k.name, k.match, window), end)
	for _, s := range counts {
		if s.V > 0 { // a row of nothing says nothing
			row(s).Count = s.V
		}
	}
	return sorted(rows), err
}

func sorted(rows map[string]*result.KeyRow) []result.KeyRow {
	var all []result.KeyRow
	for _, r := range rows {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b result.KeyRow) int { return strings.Compare(a.Label, b.Label) })
	return all
}

// componentCosts reads what each process used from the first scrape to the
// last, by its own process_* metrics, the generator's included.
func componentCosts(ctx context.Context, a *archive.Archive) ([]result.ComponentCost, error) {
	costs := []result.ComponentCost{}
	start, end, missing, err := wholeRun(ctx, a)
	if err != nil || missing != "" {
		return costs, err
	}
	at := map[string]int{}
	var total float64
	window := archive.Window(start, end)
	for _, read := range []struct {
		expr string
		set  func(*result.ComponentCost, float64)
	}{
		{"sum by (instance) (increase(process_cpu_seconds_total[%s]))", func(c *result.ComponentCost, v float64) { c.CPUSeconds, total = v, total+v }},
		{"max by (instance) (max_over_time(process_resident_memory_bytes[%s]))", func(c *result.ComponentCost, v float64) { c.MaxRSSBytes = v }},
		{"max by (instance) (max_over_time(process_open_fds[%s]))", func(c *result.ComponentCost, v float64) { c.MaxDescriptors = v }},
	} {
		samples, err := a.Instant(ctx, fmt.Sprintf(read.expr, window), end)
		if err != nil {
			return costs, err
		}
		for _, s := range samples {
			name := s.Labels["instance"]
			if _, known := at[name]; !known {
				at[name] = len(costs)
				costs = append(costs, result.ComponentCost{Name: name})
			}
			read.set(&costs[at[name]], s.V)
		}
	}
	for i := range costs {
		if total > 0 {
			costs[i].CPUShare = costs[i].CPUSeconds / total
		}
	}
	slices.SortFunc(costs, func(a, b result.ComponentCost) int { return strings.Compare(a.Name, b.Name) })
	return costs, nil
}
