package gate

import (
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	apiCallSLO   = "Kubernetes sig-scalability, slos/api_call_latency.md"
	etcdHardware = "etcd documentation, FAQ and hardware guide: WAL fsync p99 under 10 ms"
)

// virtual are resources that are no objects in etcd: the official objectives
// leave them out.
const virtual = "(self|local)?subjectaccessreviews|selfsubjectrulesreviews|selfsubjectreviews|tokenreviews|bindings"

// histogram makes an objective of the q-quantile of a classic histogram, for
// each group of labels by.
func histogram(o Objective, q float64, metric, match string, by ...string) Objective {
	o.Unit = scenario.Seconds
	o.quantile, o.least = q, leastLatency
	o.buckets = fmt.Sprintf("sum by (%s) (increase(%s_bucket{%s}[$window]))", strings.Join(append(by, "le"), ", "), metric, match)
	o.Expr = fmt.Sprintf("histogram_quantile(%g, %s)", q, o.buckets)
	return o
}

func scraped() []Objective {
	var (
		api       = []string{control.KindAPIServer}
		etcd      = []string{control.KindEtcd}
		scheduler = []string{control.KindScheduler}
		clients   = []string{control.KindControllerManager, control.KindScheduler}
		all       = []string{control.KindEtcd, control.KindAPIServer, control.KindScheduler, control.KindControllerManager, "loadgen"}
	)
	return []Objective{
		histogram(Objective{
			Name: "mutating-latency", gap: gapShared, Default: "max: 1s", Needs: api, Source: apiCallSLO + ": p99 <= 1 s for every (resource, verb) pair",
			Doc: "The p99 latency of mutating calls (POST, PUT, PATCH, DELETE) for single objects, of the worst pair of resource and verb, " +
				"as the API server measures it. Time in webhooks and in priority and fairness' queues does not count: " +
				"request-latency has all of it. Virtual resources are left out, as upstream does.",
		}, 0.99, "apiserver_request_sli_duration_seconds",
			fmt.Sprintf(`job="kube-apiserver", verb=~"POST|PUT|PATCH|DELETE", scope="resource", resource!~"%s"`, virtual), "resource", "verb"),
		histogram(Objective{
			Name: "read-latency", gap: gapShared, Default: "max: 1s", Needs: api, Source: apiCallSLO + ": p99 <= 1 s for scope=resource",
			Doc: "The p99 latency of reads of one object (GET), of the worst resource, as the API server measures it.",
		}, 0.99, "apiserver_request_sli_duration_seconds",
			fmt.Sprintf(`job="kube-apiserver", verb=~"GET|LIST", scope="resource", resource!~"%s"`, virtual), "resource", "scope"),
		histogram(Objective{
			Name: "list-latency", gap: gapShared, Default: "max: 30s", Needs: api, Source: apiCallSLO + ": p99 <= 30 s for scope=namespace and scope=cluster",
			Doc: "The p99 latency of lists of a namespace or of the whole cluster, of the worst pair of resource and scope, as the API server measures it.",
		}, 0.99, "apiserver_request_sli_duration_seconds",
			fmt.Sprintf(`job="kube-apiserver", verb=~"GET|LIST", scope=~"namespace|cluster", resource!~"%s"`, virtual), "resource", "scope"),
		histogram(Objective{
			Name: "wal-fsync", Default: "max: 10ms", Needs: etcd, Source: etcdHardware,
			Doc: "The p99 time of etcd's write-ahead log fsync, of the worst member. The buckets are 1 ms × 2^n: between 8 and 16 ms this is " +
				"interpolated. wal-fsync-slow is exact.",
		}, 0.99, "etcd_disk_wal_fsync_duration_seconds", `job="etcd"`, "instance"),
		{
			Name: "wal-fsync-slow", Unit: scenario.Ratio, Default: "max: 1%", Needs: etcd, Source: etcdHardware + "; 16 ms is the next edge of a bucket",
			Doc: "The fraction of etcd's write-ahead log fsyncs that took over 16 ms, of the worst member. Exact: 16 ms is the edge of a bucket.",
			Expr: `1 - sum by (instance) (increase(etcd_disk_wal_fsync_duration_seconds_bucket{job="etcd", le="0.016"}[$window]))` +
				` / sum by (instance) (increase(etcd_disk_wal_fsync_duration_seconds_count{job="etcd"}[$window]))`,
		},
		{
			Name: "leader-changes", gap: gapCountSeenByAll, Unit: scenario.PerHour, Default: "max: 1/h", Needs: etcd, Source: "etcd documentation on leader elections",
			Doc: "etcd leader changes, seen by the member that saw most, per hour. A window shorter than an hour counts as " +
				"an hour: one change in ten minutes is 1/h.",
			Expr: `max(round(increase(etcd_server_leader_changes_seen_total{job="etcd"}[$window]))) / $hours`, spans: true,
		},
		histogram(Objective{
			Name: "scheduling-latency", gap: gapShared, Default: "max: 1s", Needs: scheduler, Source: "scheduler_perf's and Kubernetes' own metric",
			Doc: "The p99 time of a scheduling attempt that placed its pod: algorithm and binding, without the time in the queue.",
		}, 0.99, "scheduler_scheduling_attempt_duration_seconds", `job="kube-scheduler", result="scheduled"`),
		{
			Name: "too-many-requests", gap: gapCount, Unit: scenario.Count, Default: "max: 0", Needs: api, Source: "API priority and fairness, request rejection",
			Doc: "Requests answered with 429, rejected by priority and fairness or by an eviction's disruption budget.",
			Expr: `round(sum(increase(apiserver_request_total{job="kube-apiserver", code="429"}[$window]))` +
				` or 0 * sum(increase(apiserver_request_total{job="kube-apiserver"}[$window])))`, spans: true, sums: true,
		},
		histogram(Objective{
			Name: "throttled", gap: gapShared, Default: "max: 1s", Needs: clients, Source: "client-go's rate limiter (QPS and burst)",
			Doc: "The p99 time that requests of the controller manager and the scheduler wait for their client-side rate limiter, of the worse.",
		}, 0.99, "rest_client_rate_limiter_duration_seconds", `job=~"kube-controller-manager|kube-scheduler"`, "job"),
		{
			Name: "generator-cpu", gap: gapAgainst, Unit: scenario.Ratio, Default: "max: 10%", Needs: all, Source: "Stormglass' own bound",
			Doc: "The generator's part, simulated nodes included, of all CPU seconds that it and the control plane used.",
			Expr: `sum(increase(process_cpu_seconds_total{job="loadgen"}[$window])) / ` +
				`sum(increase(process_cpu_seconds_total{job=~"etcd|kube-apiserver|kube-scheduler|kube-controller-manager|loadgen"}[$window]))`, spans: true,
		},
	}
}
