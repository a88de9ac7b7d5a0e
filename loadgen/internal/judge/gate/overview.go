package gate

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

// keyMetric says how to read one of the report's four key metrics over the whole run.
type keyMetric struct {
	name  string
	label string // metric label that has a different value in each row
	match string
	// counter means that the rows show increases of a counter. Otherwise they show quantiles of a histogram.
	counter bool
}

func keys() []keyMetric {
	return []keyMetric{
		{name: "etcd_disk_wal_fsync_duration_seconds", label: "instance", match: `job="etcd"`},
		// Exclude watches and tunnels: their duration is the client's choice and not a latency.
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
	rows := table[result.KeyRow]{label: k.label, rows: map[string]*result.KeyRow{}}
	increase := func(suffix, by string) string {
		return fmt.Sprintf("sum by (%s) (increase(%s%s{%s}[%s]))", by, k.name, suffix, k.match, archive.Window(start, end))
	}
	if k.counter {
		err := rows.read(ctx, a, "round("+increase("", k.label)+")", end, func(r *result.KeyRow, v float64) { r.Value, r.Count = &v, v })
		return rows.sorted(nameRow), err
	}
	for _, q := range []struct {
		quantile string
		set      func(*result.KeyRow, float64)
	}{
		{"0.5", func(r *result.KeyRow, v float64) { r.P50 = &v }},
		{"0.95", func(r *result.KeyRow, v float64) { r.P95 = &v }},
		{"0.99", func(r *result.KeyRow, v float64) { r.P99 = &v }},
	} {
		if err := rows.read(ctx, a, "histogram_quantile("+q.quantile+", "+increase("_bucket", k.label+", le")+")", end, q.set); err != nil {
			return nil, err
		}
	}
	// Only groups with observations get a row.
	err := rows.read(ctx, a, "round("+increase("_count", k.label)+") > 0", end, func(r *result.KeyRow, v float64) { r.Count = v })
	return rows.sorted(nameRow), err
}

func nameRow(r *result.KeyRow, label string) { r.Label = label }

type table[T any] struct {
	label string
	rows  map[string]*T
}

// read evaluates a PromQL expression, and stores its values in the rows with the function `set`. It skips values that
// are NaN or infinite.
func (t table[T]) read(ctx context.Context, a *archive.Archive, expr string, at time.Time, set func(*T, float64)) error {
	samples, err := a.Instant(ctx, expr, at)
	for _, s := range samples {
		if math.IsNaN(s.V) || math.IsInf(s.V, 0) {
			continue
		}
		label := s.Labels[t.label]
		if t.rows[label] == nil {
			t.rows[label] = new(T)
		}
		set(t.rows[label], s.V)
	}
	return err
}

func (t table[T]) sorted(name func(*T, string)) (all []T) {
	for _, label := range slices.Sorted(maps.Keys(t.rows)) {
		name(t.rows[label], label)
		all = append(all, *t.rows[label])
	}
	return all
}

// componentCosts returns the resources that each process used from the first scrape to the last,
// according to its process_* metrics. It includes the generator.
func componentCosts(ctx context.Context, a *archive.Archive) ([]result.ComponentCost, error) {
	costs := []result.ComponentCost{}
	start, end, missing, err := wholeRun(ctx, a)
	if err != nil || missing != "" {
		return costs, err
	}
	var total float64
	rows := table[result.ComponentCost]{label: "instance", rows: map[string]*result.ComponentCost{}}
	for _, read := range []struct {
		expr string
		set  func(*result.ComponentCost, float64)
	}{
		{"sum by (instance) (increase(process_cpu_seconds_total[%s]))", func(c *result.ComponentCost, v float64) { c.CPUSeconds, total = v, total+v }},
		{"max by (instance) (max_over_time(process_resident_memory_bytes[%s]))", func(c *result.ComponentCost, v float64) { c.MaxRSSBytes = v }},
		{"max by (instance) (max_over_time(process_open_fds[%s]))", func(c *result.ComponentCost, v float64) { c.MaxDescriptors = v }},
	} {
		if err := rows.read(ctx, a, fmt.Sprintf(read.expr, archive.Window(start, end)), end, read.set); err != nil {
			return costs, err
		}
	}
	costs = append(costs, rows.sorted(func(c *result.ComponentCost, name string) {
		c.Name = name
		if total > 0 {
			c.CPUShare = c.CPUSeconds / total
		}
	})...)
	return costs, nil
}
