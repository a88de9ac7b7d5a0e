package report

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func detailView(_ context.Context, p *page) (any, error) { return phaseTables(p.result), nil }

// phaseTables returns the tables with details of the phases, without tables for kinds of load that the run did not use.
func phaseTables(r result.Result) []table {
	phases := r.Measurements.Phases
	overview := table{
		Caption: "Phases", Empty: "No phase was measured.",
		Head: heads("Phase", ">Duration", "Ended by", ">Pods created", ">Pods Ready", ">Pods deleted", ">Startup p50", ">Startup p95", ">Startup p99", ">Scheduling p99", ">Bound to Ready p99", ">Endpoint p99", ">NotReady after", ">Recovered after"),
		Note: "All times of pods are measured by a watch. Startup: from the pod's first event until Ready. Scheduling: from the first event until the pod is bound to a node. Bound to Ready: from the binding until Ready. Endpoint: from Ready until the pod is in an EndpointSlice (pods of a Service only). NotReady after: from the failure of nodes until all of them were seen NotReady. Recovered after: from the failure of nodes until every workload was complete again.",
	}
	requests := table{
		Caption: "Requests",
		Head:    heads("Phase", "Load", "Call", ">Offered", ">Achieved", ">Sent", ">Unsent", ">Backlog", ">p50", ">p90", ">p95", ">p99", ">p99.9", ">Max", ">Service p99", ">Lag p99", ">External p99", "Answers by code"),
		Note:    "Offered: the rate at which requests were due; with arrival poisson, it varies around the scenario's rate. Achieved: the number of 2xx answers that arrived in the phase, divided by the time in which requests were due. Unsent: requests that were skipped, because maxInFlight requests were in flight. Backlog: requests that were sent but not answered when the phase ended. The latencies p50 to Max count from the intended start of each request, and include failed requests. Service: latency from the actual send. Lag: delay from the intended start until the generator began to process the request. External: latency without the lag and without stalls of the generator. With fewer than 100 requests, the p99 is the maximum; with fewer than 1,000, the p99.9 is.",
	}
	watches := table{
		Caption: "Watches",
		Head:    heads("Phase", "Load", "Resource", ">Open", ">Failed", ">Open p99", ">Expected", ">Delivered", ">Lost", ">Duplicated", ">Reordered", ">Delivery p50", ">p95", ">p99", ">p99.9", ">Max", ">Reconnects", ">Relists"),
		Note:    "Expected: number of events that the watches should get: one for each acknowledged write and each watch that must see this write. Delivery: time from the acknowledgement of the write until the watch got the event (p50 to Max).",
	}
	for _, p := range phases {
		overview.add(phaseRow(p)...)
		for _, l := range rundir.Requests(p) {
			requests.add(requestRow(p, l)...)
		}
		for _, w := range p.Watches {
			watches.add(watchRow(p, w)...)
		}
	}
	out := []table{overview}
	for _, t := range []table{
		deliveryTable(phases), transitionTable(phases), requests, watches, figuresTable(phases), nodesTable(r.Measurements.Nodes), workersTable(r.Measurements.Workers),
	} {
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return append(out, costTable(r))
}

func phaseRow(p result.Phase) []string {
	end := "time"
	switch {
	case p.Interrupted:
		end = "an interrupt"
	case p.EndedEarly:
		end = "the user"
	case p.Until != "" && p.ConditionMet:
		end = terminal.Clean(p.Until)
	case p.Until != "":
		end = terminal.Clean(p.Until) + " not met"
	}
	w := cmp.Or(p.Workload, &result.Workload{})
	row := []string{terminal.Clean(p.Name), seconds(p.Seconds()), end, chart.Count(w.PodsCreated), chart.Count(w.PodsReady), chart.Count(w.PodsDeleted)}
	row = append(row, quantiles(w.Startup, w.Startup.P50, w.Startup.P95, w.Startup.P99)...)
	return append(row, p99Of(w.ToScheduled), p99Of(w.ToReady), p99Of(w.ToEndpoint), optional(w.NotReadyAfter), optional(w.RecoveredAfter))
}

// quantiles formats quantiles of a distribution. If the distribution is empty, it returns dashes,
// because zero would be wrong.
func quantiles(l result.Latency, values ...float64) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = chart.None
		if l.Count > 0 {
			out[i] = seconds(v)
		}
	}
	return out
}

func p99Of(l result.Latency) string { return quantiles(l, l.P99)[0] }

func requestRow(p result.Phase, l result.Requests) []string {
	row := []string{terminal.Clean(p.Name), terminal.Clean(l.Load), callText(l.Verb, l.Resource, l.Variant, l.Tenant),
		chart.Format(scenario.PerSec, l.OfferedRate), chart.Format(scenario.PerSec, l.AchievedRate), chart.Count(l.Sent), chart.Count(l.Unsent), chart.Count(l.Backlog)}
	row = append(row, quantiles(l.Latency, l.Latency.P50, l.Latency.P90, l.Latency.P95, l.Latency.P99, l.Latency.P999, l.Latency.Max)...)
	return append(row, p99Of(l.Service), p99Of(l.Lag), p99Of(l.External), tally(l.Outcomes))
}

func tally(m map[string]int64) string {
	var parts []string
	for _, k := range sortedKeys(m) {
		parts = append(parts, terminal.Clean(k)+" × "+chart.Count(m[k]))
	}
	return strings.Join(parts, ", ")
}

func watchRow(p result.Phase, w result.Watches) []string {
	open := chart.Count(w.Open)
	if w.Open != w.Wanted {
		open += " of " + chart.Count(w.Wanted)
	}
	failed := chart.Count(w.Failed)
	if kinds := tally(w.Failures); kinds != "" {
		if why := tally(w.Refusals); why != "" {
			kinds += "; " + why
		}
		failed += " (" + kinds + ")"
	}
	row := []string{terminal.Clean(p.Name), terminal.Clean(w.Load), terminal.Clean(w.Resource), open, failed, p99Of(w.OpenLatency),
		chart.Count(w.Expected), chart.Count(w.Delivered), chart.Count(w.Lost), chart.Count(w.Duplicated), chart.Count(w.Reordered)}
	row = append(row, quantiles(w.Delivery, w.Delivery.P50, w.Delivery.P95, w.Delivery.P99, w.Delivery.P999, w.Delivery.Max)...)
	return append(row, chart.Count(w.Reconnects), chart.Count(w.Relists))
}

func nodesTable(n *result.Nodes) table {
	t := table{Caption: "Simulated nodes", Head: heads("Measurement", "Value"), Note: "If there are errors: 403 and 404 are normal when nodes start."}
	if n == nil || n.Count == 0 {
		return t
	}
	t.add("Nodes", chart.Count(n.Count))
	t.add("Fidelity", terminal.Clean(n.Fidelity))
	t.add("Time until all were Ready", seconds(n.ReadySeconds))
	t.add("Heartbeats acknowledged", chart.Count(n.Heartbeats))
	t.add("Heartbeat latency, p99", p99Of(n.Heartbeat))
	t.add("Heartbeats missed because of the generator", chart.Count(n.MissedByGenerator))
	t.add("Heartbeats missed because of the API server", chart.Count(n.MissedByServer))
	t.add("Writes of node and pod status", chart.Count(n.StatusWrites))
	t.add("Pods started", chart.Count(n.PodsStarted))
	t.add("Pods stopped", chart.Count(n.PodsStopped))
	t.add("Open watches, maximum", chart.Count(n.Watches))
	t.add("Watches that resumed", chart.Count(n.Reconnects))
	t.add("Watches that listed again", chart.Count(n.Relists))
	for _, k := range sortedKeys(n.Errors) {
		t.add("Errors: "+terminal.Clean(k), chart.Count(n.Errors[k]))
	}
	return t
}

func costTable(r result.Result) table {
	g := r.Measurements.Generator
	t := table{
		Caption: "Resource use over the whole run", Empty: "The process metrics of the components were not recorded.",
		Head: heads("Process", ">CPU time", ">% of sum", ">Peak memory", ">Peak file descriptors"),
		Note: fmt.Sprintf("loadgen had at most %s goroutines. The p99 of its garbage collection pauses was %s, and the p99 of the delay of its timers %s.",
			chart.Count(g.MaxGoroutines), seconds(g.GCPauseP99), seconds(g.SchedulingLag.P99)),
	}
	if !measuredToTheEnd(r.Measurements) {
		t.Note = "loadgen did not record its own resource use."
	}
	for _, c := range r.Components {
		t.add(terminal.Clean(c.Name), seconds(c.CPUSeconds), chart.Format(scenario.Ratio, c.CPUShare), chart.Format(scenario.Size, c.MaxRSSBytes), chart.Count(int64(c.MaxDescriptors)))
	}
	return t
}

// runSeconds returns the time in seconds from the start of the first phase to the end of the
// last, or the length of the run if it has no phases.
func runSeconds(r result.Result) float64 {
	if p := r.Measurements.Phases; len(p) > 0 {
		return p[len(p)-1].End.Sub(p[0].Start).Seconds()
	}
	return max(r.Run.Ended.Sub(r.Run.Started).Seconds(), 0)
}

func (t *terminalWriter) cost(r result.Result) {
	if len(r.Components) == 0 {
		return
	}
	tab := costTable(r)
	tab.Head = heads("~RESOURCE USE", ">CPU time", ">% of sum", ">peak memory", ">peak descriptors")
	t.section(&tab)
	if n := r.Measurements.Nodes; n != nil && n.MissedByGenerator+n.MissedByServer > 0 {
		t.line(terminal.Shorten(fmt.Sprintf("  heartbeats: %s acknowledged, %s missed because of the generator, %s because of the API server",
			chart.Count(n.Heartbeats), chart.Count(n.MissedByGenerator), chart.Count(n.MissedByServer)), t.width))
	}
	if s := r.Measurements.Scrapes; len(s.Failed) > 0 {
		var lost []string
		for _, name := range sortedKeys(s.Failed) {
			lost = append(lost, fmt.Sprintf("%s of %s", chart.Count(s.Failed[name]), terminal.Clean(name)))
		}
		t.line(terminal.Shorten(fmt.Sprintf("  scrapes: %s in total, lost: %s", chart.Count(s.Done), strings.Join(lost, ", ")), t.width))
	}
}
