package source

import (
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/dashboards"
)

// board is one dashboard, as data. How it becomes Grafana's JSON is in build.go.
type board struct {
	uid, title string
	// tells what the dashboard is for.
	tells string
	// jobs is the PromQL matcher of the components whose instances can be chosen.
	jobs string
	rows []row
}

type row struct {
	title  string
	panels []panel
}

// panel is one picture. The zero values of its looks are a plain line chart.
type panel struct {
	// kind is "timeseries" (or empty), "stat", "table", "heatmap" or "state-timeline".
	kind  string
	title string
	// tells what is shown and what it means; do, what to do about it.
	tells, do string
	unit      string
	// w and h in Grafana's grid of 24 columns; zero: 8 by 8.
	w, h    uint32
	queries []query
	// warn and bad are where orange and red begin; zero: nowhere. With falls
	// they are where they end: low is bad.
	warn, bad float64
	falls     bool
	log       bool // logarithmic axis
	stacked   bool
	max       float64 // of the axis; zero: as high as the values
	min       float64 // of a logarithmic axis; zero: as low as the values
	// calc makes one number of a series, of a stat; empty: the last.
	calc string
	// hidden and renamed are columns of a table.
	hidden  []string
	renamed map[string]string
	// more is the UID of the dashboard that shows more of this.
	more string
	// moves are what must move this panel, each shown by a run: a kind of fault or of
	// load, and after a space what it must be of, if that matters ("kill etcd").
	moves []string
}

// query is one PromQL expression. @etcd, @api, @scheduler, @kcm, @generator,
// @control (all four components) and @all stand for the matchers of job, cluster
// and instance, @record and @irecord for those of a record without and with
// instances, and @rate for Grafana's $__rate_interval.
type query struct {
	expr, legend string
	// empty is why it may have no answer; nil: it must have one.
	empty *dashboards.Reason
}

const (
	jobEtcd      = `job="etcd"`
	jobAPI       = `job="kube-apiserver"`
	jobScheduler = `job="kube-scheduler"`
	jobKCM       = `job="kube-controller-manager"`
	jobGenerator = `job="loadgen"`
	jobClients   = `job=~"kube-scheduler|kube-controller-manager"`
	jobControl   = `job=~"kube-apiserver|etcd|kube-scheduler|kube-controller-manager"`
	jobAll       = `job=~"kube-apiserver|etcd|kube-scheduler|kube-controller-manager|loadgen"`
	chosen       = `, cluster=~"$cluster", instance=~"$instance"`
)

var abbreviations = strings.NewReplacer(
	"@etcd", jobEtcd+chosen, "@api", jobAPI+chosen, "@scheduler", jobScheduler+chosen, "@kcm", jobKCM+chosen,
	"@generator", jobGenerator+chosen, "@control", jobControl+chosen, "@all", jobAll+chosen,
	"@record", `cluster=~"$cluster"`, "@irecord", `cluster=~"$cluster", instance=~"$instance"`,
	"@rate", "$__rate_interval",
)

// q is a query that must have an answer.
func q(expr, legend string) query { return query{expr: expr, legend: legend} }

// or sets the reason why the query may have no data.
func (x query) or(why dashboards.Reason) query {
	x.empty = &why
	return x
}

// quantile of a classic histogram by labels: interpolated between the edges of
// its buckets. The name is without _bucket.
func quantile(at float64, histogram, matchers string, by ...string) string {
	return fmt.Sprintf("histogram_quantile(%g, sum by (%s) (rate(%s_bucket{%s}[@rate])))",
		at, strings.Join(append([]string{"le"}, by...), ", "), histogram, matchers)
}

// p99 is the quantile 0.99.
func p99(histogram, matchers string, by ...string) string {
	return quantile(0.99, histogram, matchers, by...)
}

// rate is the increase of a counter per second, by labels.
func rate(counter, matchers string, by ...string) string {
	if len(by) == 0 {
		return fmt.Sprintf("sum(rate(%s{%s}[@rate]))", counter, matchers)
	}
	return fmt.Sprintf("sum by (%s) (rate(%s{%s}[@rate]))", strings.Join(by, ", "), counter, matchers)
}

// mean of a histogram by labels; of nothing there is none.
func mean(histogram, matchers string, by ...string) string {
	return rate(histogram+"_sum", matchers, by...) + " / (" + rate(histogram+"_count", matchers, by...) + " > 0)"
}

// buckets returns the query of a heatmap.
func buckets(histogram, matchers string) string {
	return fmt.Sprintf("sum by (le) (increase(%s_bucket{%s}[@rate]))", histogram, matchers)
}

// boards is all dashboards.
func boards() []board {
	return []board{overview(), apiServer(), etcd(), scheduler(), controllerManager(), nodes(), generator(), run()}
}

// processRow holds the process metrics of a job's components; waits tells whether it
// exports how long its goroutines wait (etcd does not).
func processRow(job string, waits bool) row {
	at := job + chosen
	var limited []string
	if job == jobAPI { // no run has lowered the limit of another
		limited = []string{"descriptorLimit kube-apiserver"}
	}
	r := row{"The process", []panel{
		{
			title: "CPU", unit: "short", w: 6, queries: []query{q(rate("process_cpu_seconds_total", at, "instance"), "{{instance}}")},
			tells: "Cores in use. Where all of them together reach what the machine has, every latency is the machine's.",
			do:    "give the busiest component more cores or a machine of its own; find out which requests cost it.",
		}, {
			title: "Memory", unit: "bytes", w: 6, queries: []query{q("sum by (instance) (process_resident_memory_bytes{"+at+"})", "{{instance}}")},
			tells: "Resident memory. It follows the number of objects and of watches; LISTs come on top while they last.",
			do:    "if it climbs without objects being made, look for LISTs in a loop and for caches that are filled anew.",
		}, {
			title: "Open descriptors", unit: "short", w: 6, moves: limited,
			queries: []query{
				q("sum by (instance) (process_open_fds{"+at+"})", "{{instance}}"),
				q("sum by (instance) (last_over_time(process_max_fds{"+at+"}[1h]) < 10000)", "{{instance}} limit").or(dashboards.Reason{
					Text: "Every limit is 10,000 or more.", Unless: "process_max_fds{" + job + "} < 10000"}),
			},
			tells: "Each connection and each file is one. A limit is drawn where it is below 10,000; at it a process cannot read its own, so the last that it read is drawn. At the limit new connections fail while CPU and memory look idle.",
			do:    "raise the limit (LimitNOFILE=1048576) and restart; then find the client that does not reuse its connections.",
		},
	}}
	if waits {
		r.panels = append(r.panels, panel{
			title: "Wait for a CPU, p99", unit: "s", w: 6, log: true, warn: 0.1,
			queries: []query{q(p99("go_sched_latencies_seconds", at, "instance"), "{{instance}}")},
			tells:   "How long a goroutine that could run waits until it does. It tells a process that is starved from one that is only busy.",
			do:      "above 100 ms trust no latency that this process measures: take its neighbours away, or give it cores.",
		})
	}
	return r
}
