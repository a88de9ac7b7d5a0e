package report

import (
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// metricChart declares one chart of the timeline. What it draws is data, in this
// file; how it is drawn is in draw.go.
type metricChart struct {
	// Title, and one sentence on what the chart tells a person.
	Title, Tells string
	// MovesWith names the faults and actions that this chart shows first.
	MovesWith string
	Unit      scenario.Unit
	Queries   []query
	// Log draws a logarithmic axis: latencies span five decades.
	Log bool
	// Dips marks charts whose low values matter: nodes Ready, not latency.
	Dips bool
	// Guide is a level worth knowing, drawn as a line with its reason.
	Guide     float64
	GuideText string
	// Key is the key metric that the chart shows, if it is one of the four.
	Key string
	// Job is the scrape job that the series come from.
	Job string
	// Quiet says what it means that there are no samples, where that is good
	// news. Empty: it is not.
	Quiet string
	// Needs returns why a run cannot have this chart, or "".
	Needs func(result.Measurements) string
}

// query is one PromQL expression of a chart. $rate is the window of rates, two
// scrapes and a bit; $seen that of gauges, one and a bit: both so short that a
// gap in the scrapes is a gap in the line, and that the line follows the storm.
type query struct {
	Expr string
	// By names the labels that tell the series apart; their values make the
	// series' name. Name is used where there are none.
	By   []string
	Name string
	// PerPhase draws an exact client-side number as a level through each
	// phase, in place of Expr.
	PerPhase func(result.Phase) float64
}

// chartSection groups charts under a heading.
type chartSection struct {
	Title  string
	Charts []metricChart
}

// jobGenerator is the scrape job of our own metrics.
const jobGenerator = "loadgen"

// p99 is the quantile of a histogram by labels, whether it was recorded as a
// native histogram or with classic buckets.
func p99(metric, matchers string, by ...string) string {
	native, classic := strings.Join(by, ", "), strings.Join(append([]string{"le"}, by...), ", ")
	return fmt.Sprintf("histogram_quantile(0.99, sum by (%s) (rate(%s%s[$rate]))) or histogram_quantile(0.99, sum by (%s) (rate(%s_bucket%s[$rate])))",
		native, metric, matchers, classic, metric, matchers)
}

// longCalls are requests that last as long as their client likes.
const longCalls = `{verb!~"WATCH|WATCHLIST|CONNECT|PROXY", subresource!~"log|exec|attach|portforward|proxy"}`

// chartSections is the charts, in the order of a request's way: API server, etcd,
// scheduler and controllers, nodes and pods; then what the client saw of it,
// and what it cost.
func chartSections() []chartSection {
	return []chartSection{
		{"API server", []metricChart{
			{
				Title: "Requests by verb", Unit: scenario.PerSec, Job: control.KindAPIServer,
				Tells:     "What the control plane was asked to do. A storm is a change of this mix, not only of its height.",
				MovesWith: "deploy, rolling update, node failure",
				Queries:   []query{{Expr: `sum by (verb) (rate(apiserver_request_total[$rate]))`, By: []string{"verb"}}},
			}, {
				Title: "Request latency p99 by verb, at the server", Key: keyRequests, Unit: scenario.Seconds, Log: true, Job: control.KindAPIServer,
				Guide: 1, GuideText: "1 s: upstream's objective for calls on one object",
				Tells:     "POST, PUT and PATCH rise with etcd; LIST with the number of objects; all of them together with CPU or descriptors.",
				MovesWith: "slow disk, heavy LISTs, node failure",
				Queries:   []query{{Expr: p99(keyRequests, longCalls, "verb"), By: []string{"verb"}}},
			}, {
				Title: "Refused and failed requests by code", Unit: scenario.PerSec, Job: control.KindAPIServer,
				Tells:     "409 is two writers of one object, 429 priority and fairness pushing back, 5xx trouble behind the API server.",
				MovesWith: "overload, lost etcd quorum, slow webhook",
				Quiet:     "No answer with a 4xx or 5xx code was recorded.",
				Queries:   []query{{Expr: `sum by (code) (rate(apiserver_request_total{code=~"4..|5.."}[$rate]))`, By: []string{"code"}}},
			}, {
				Title: "Requests in flight", Unit: scenario.Count, Job: control.KindAPIServer,
				Guide: 400, GuideText: "400: default of --max-requests-inflight",
				Tells:     "A queue of work inside the API server. It grows when requests arrive faster than etcd and CPU let them go.",
				MovesWith: "slow disk, overload",
				Queries:   []query{{Expr: `sum by (request_kind) (max_over_time(apiserver_current_inflight_requests[$seen]))`, By: []string{"request_kind"}}},
			}, {
				Title: "Wait in priority and fairness, p99 by level", Unit: scenario.Seconds, Log: true, Job: control.KindAPIServer,
				Tells:     "Which clients were made to wait for others. Time here is in the client's latency but in no handler's.",
				MovesWith: "overload by one client",
				Queries:   []query{{Expr: p99("apiserver_flowcontrol_request_wait_duration_seconds", "", "priority_level"), By: []string{"priority_level"}}},
			},
		}},
		{"etcd", []metricChart{
			{
				Title: "WAL fsync p99", Key: keyFsync, Unit: scenario.Seconds, Log: true, Job: control.KindEtcd,
				Guide: 0.010, GuideText: "10 ms: above it, the disk is too slow for etcd",
				Tells:     "Rises first when the disk is slow, before any request does. The earliest warning of all.",
				MovesWith: "slow disk, a busy neighbour on the disk",
				Queries:   []query{{Expr: p99(keyFsync, "", "instance"), By: []string{"instance"}}},
			}, {
				Title: "etcd calls p99, as the API server sees them", Unit: scenario.Seconds, Log: true, Job: control.KindAPIServer,
				Tells:     "What is left of a request's latency after this is the API server's own: queueing, admission, encoding.",
				MovesWith: "slow disk, network between API server and etcd",
				Queries:   []query{{Expr: p99("etcd_request_duration_seconds", "", "operation"), By: []string{"operation"}}},
			}, {
				Title: "Leader changes seen", Key: keyLeaders, Unit: scenario.Count, Job: control.KindEtcd,
				Tells:     "A step up means an election; the first one counts too. More than one an hour is a slow disk or a bad network between the members.",
				MovesWith: "member killed or paused, network partition, slow disk",
				Queries:   []query{{Expr: `max by (instance) (max_over_time(etcd_server_leader_changes_seen_total[$seen]))`, By: []string{"instance"}}},
			},
		}},
		{"Scheduler and controllers", []metricChart{
			{
				Title: "Scheduling attempt p99", Key: keyScheduling, Unit: scenario.Seconds, Log: true, Job: control.KindScheduler,
				Tells:     "One attempt to place one pod, filter to bind. It grows with nodes, spread constraints and the score percentage.",
				MovesWith: "deploy, anti-affinity at scale",
				Queries:   []query{{Expr: p99(keyScheduling, "", "result"), By: []string{"result"}}},
			}, {
				Title: "Pending pods by queue", Unit: scenario.Count, Job: control.KindScheduler,
				Tells:     "active waits for the scheduler, backoff and unschedulable wait for the cluster.",
				MovesWith: "deploy, node failure",
				Queries:   []query{{Expr: `sum by (queue) (max_over_time(scheduler_pending_pods[$seen]))`, By: []string{"queue"}}},
			}, {
				Title: "Controller work queues", Unit: scenario.Count, Job: control.KindControllerManager,
				Tells:     "Objects that wait for a controller. A queue that stays up while CPU is idle is held back by --kube-api-qps.",
				MovesWith: "rolling update, node failure",
				Queries:   []query{{Expr: `max by (name) (max_over_time(workqueue_depth{job="kube-controller-manager"}[$seen]))`, By: []string{"name"}}},
			},
		}},
		{"Nodes and pods", []metricChart{
			{
				Title: "Nodes Ready", Unit: scenario.Count, Dips: true, Job: jobGenerator, Needs: needsNodes,
				Tells:     "As the API server says, and as the simulated kubelets believe of themselves. The gap is the failure not yet noticed.",
				MovesWith: "node failure and recovery",
				Queries: []query{
					{Expr: `sum(min_over_time(stormglass_workload_nodes_ready[$seen]))`, Name: "per API server"},
					{Expr: `sum(min_over_time(stormglass_nodes_ready[$seen]))`, Name: "per kubelet"},
				},
			}, {
				Title: "Pods", Unit: scenario.Count, Dips: true, Job: jobGenerator, Needs: needsPods,
				Tells:     "Ready against wanted is what users of the cluster feel; unscheduled waits for the scheduler.",
				MovesWith: "deploy, rolling update, node failure",
				Queries: []query{
					{Expr: `sum(max_over_time(stormglass_workload_pods_wanted[$seen]))`, Name: "wanted"},
					{Expr: `sum(min_over_time(stormglass_workload_pods_ready[$seen]))`, Name: "ready"},
					{Expr: `sum(max_over_time(stormglass_workload_pods_unscheduled[$seen]))`, Name: "unscheduled"},
					{Expr: `sum(max_over_time(stormglass_workload_pods_terminating[$seen]))`, Name: "terminating"},
				},
			}, {
				Title: "Heartbeats missed, by whose fault", Unit: scenario.PerSec, Job: jobGenerator, Needs: needsNodes,
				Tells:     "generator means that we starved our own nodes and the run is worth little; server that renewals were not acknowledged in time.",
				MovesWith: "overload",
				Queries:   []query{{Expr: `sum by (cause) (rate(stormglass_node_heartbeats_missed_total[$rate]))`, By: []string{"cause"}}},
			},
		}},
		{"What the client saw", clientCharts()},
		{"What it cost", costCharts()},
	}
}
