package report

import (
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func clientCharts() []metricChart {
	return []metricChart{
		{
			Title: "Offered and achieved", Unit: scenario.PerSec, Job: jobGenerator, Needs: needsRequests,
			Tells:     "Offered is the schedule's mean over each phase; achieved counts 2xx answers when they come. Below it: a stall. Unsent: no free slot, so the latency would have been worse.",
			MovesWith: "overload, any stall",
			Queries: []query{
				{Name: "offered", PerPhase: func(p result.Phase) float64 { return sums(p).offered }},
				{Name: "achieved", Expr: `sum(rate(stormglass_requests_total{code=~"2.."}[$rate]))`},
				{Name: "unsent", Expr: `sum(rate(stormglass_requests_unsent_total[$rate]))`},
			},
		}, {
			Title: "Request latency p99 from the intended start", Unit: scenario.Seconds, Log: true, Job: jobGenerator, Needs: needsRequests,
			Guide: 1, GuideText: "1 s",
			Tells:     "What a user waits, our own delay included. The server's chart cannot show the time before a request reaches it.",
			MovesWith: "any fault",
			Queries:   []query{{Expr: p99("stormglass_request_seconds", "", "load"), By: []string{"load"}}},
		}, {
			Title: "Watches open", Unit: scenario.Count, Dips: true, Job: jobGenerator, Needs: needsWatches,
			Tells:     "Each holds a stream, a descriptor's share and a goroutine on the API server. A dip is a mass reconnect.",
			MovesWith: "watch flood, API server restart, descriptor limit",
			Queries:   []query{{Expr: `sum by (load) (min_over_time(stormglass_watches_open[$seen]))`, By: []string{"load"}}},
		}, {
			Title: "Watch events", Unit: scenario.PerSec, Job: jobGenerator, Needs: needsWatches,
			Tells:     "Read: all of them. Delivered: first deliveries of writes that we measured. Lost and duplicated must not show at all.",
			MovesWith: "fan-out of changes",
			Queries: []query{
				{Name: "read", Expr: `sum(rate(stormglass_watch_events_total[$rate]))`},
				{Name: "delivered", Expr: `sum(rate(stormglass_watch_delivered_total[$rate]))`},
				{Name: "lost", Expr: `sum(rate(stormglass_watch_lost_total[$rate]))`},
				{Name: "duplicated", Expr: `sum(rate(stormglass_watch_duplicated_total[$rate]))`},
			},
		}, {
			Title: "Watch delivery p99", Unit: scenario.Seconds, Log: true, Job: jobGenerator, Needs: needsWatches,
			Tells:     "From a write's acknowledgement to its arrival at a watcher: how old every informer's view of the cluster was.",
			MovesWith: "fan-out of changes, API server short of CPU",
			Queries:   []query{{Expr: p99("stormglass_watch_delivery_seconds", "", "load"), By: []string{"load"}}},
		},
	}
}

func costCharts() []metricChart {
	return []metricChart{
		{
			Title: "CPU by component, in cores", Unit: chart.UnitCores,
			Tells:     "Who was busy. When the sum reaches the machine's cores, latencies measure the machine, not the control plane.",
			MovesWith: "every storm",
			Queries:   []query{{Expr: `sum by (instance) (rate(process_cpu_seconds_total[$rate]))`, By: []string{"instance"}}},
		}, {
			Title: "Resident memory", Unit: scenario.Size,
			Tells:     "Objects and watches in caches. A climb that does not end with the storm is worth a second run.",
			MovesWith: "deploy, watch flood, heavy LISTs",
			Queries:   []query{{Expr: `sum by (instance) (max_over_time(process_resident_memory_bytes[$seen]))`, By: []string{"instance"}}},
		}, {
			Title: "Open descriptors", Unit: scenario.Count,
			Tells:     "Each connection is one. At the limit new connections fail while CPU and memory look idle.",
			MovesWith: "watch flood, many nodes, descriptor limit",
			Queries:   []query{{Expr: `sum by (instance) (max_over_time(process_open_fds[$seen]))`, By: []string{"instance"}}},
		}, {
			Title: "Generator's scheduling lag p99", Unit: scenario.Seconds, Log: true, Job: jobGenerator,
			Tells:     "How late we sent what we meant to send. If this rises with the latencies above, suspect us, not the cluster.",
			MovesWith: "generator short of CPU",
			Queries:   []query{{Expr: p99("stormglass_scheduling_lag_seconds", "", "load"), By: []string{"load"}, Name: "generator"}},
		},
	}
}

// Queries lists every PromQL expression of the charts, with $rate and $seen in
// place of the windows: what a recorder must keep for a report to be whole.
func Queries() []string {
	var all []string
	for _, s := range chartSections() {
		for _, c := range s.Charts {
			for _, q := range c.Queries {
				if q.Expr != "" {
					all = append(all, q.Expr)
				}
			}
		}
	}
	return all
}

// lack says why there is nothing to draw: the run did not do it, or it was killed
// before it wrote what it did.
func lack(m result.Measurements, none string) string {
	if !measuredToTheEnd(m) {
		return "Not recorded: the run did not write what it measured."
	}
	return none
}

// measuredToTheEnd reports whether the generator wrote down what is known at a run's end
// only: what loads, nodes and itself did.
func measuredToTheEnd(m result.Measurements) bool {
	return m.Generator.MaxRSSBytes > 0 || m.Scrapes.Done > 0
}

func needsNodes(m result.Measurements) string {
	if m.Nodes == nil || m.Nodes.Count == 0 {
		return lack(m, "This run simulated no nodes.")
	}
	return ""
}

func needsPods(m result.Measurements) string {
	if slices.ContainsFunc(m.Phases, func(p result.Phase) bool {
		return p.Workload != nil && p.Workload.PodsCreated+p.Workload.PodsReady+p.Workload.PodsDeleted > 0
	}) {
		return ""
	}
	return lack(m, "This run created no pods.")
}

func needsRequests(m result.Measurements) string {
	if slices.ContainsFunc(m.Phases, func(p result.Phase) bool { return len(p.Requests)+len(p.Changes) > 0 }) {
		return ""
	}
	return lack(m, "This run sent no requests of its own.")
}

func needsWatches(m result.Measurements) string {
	if slices.ContainsFunc(m.Phases, func(p result.Phase) bool { return len(p.Watches) > 0 }) {
		return ""
	}
	return lack(m, "This run opened no watches of its own.")
}
