package source

// scheduler: how long an attempt takes and where, who waits, how many nodes are looked at.
func scheduler() board {
	const plugin = "scheduler_plugin_execution_duration_seconds"
	return board{
		uid: "stormglass-scheduler", title: "Stormglass / Scheduler", jobs: jobScheduler,
		tells: "How many pods find a node, how long an attempt takes and where its time goes, who waits, and how many nodes are looked at for each pod.",
		rows: []row{
			{"Attempts", []panel{
				{
					title: "Attempts by result", unit: "ops", queries: []query{q(rate("scheduler_schedule_attempts_total", "@scheduler", "result"), "{{result}}").or(noPods)},
					tells: "scheduled is throughput. unschedulable found no node; error is the API server's or a plugin's.",
					do:    "errors: the scheduler's log. unschedulable: Pods without a node by plugin, below.",
				}, {
					title: "Attempt p99 by result", unit: "s", log: true, warn: 0.5, bad: 1,
					queries: []query{q(p99("scheduler_scheduling_attempt_duration_seconds", "@scheduler", "result"), "{{result}}").or(noPods)},
					tells:   "One attempt to place one pod, filter to bind.",
					do:      "compare with the algorithm's part beside it: the rest is binding, so the API server and etcd.",
				}, {
					title: "Where an attempt's time goes, mean", unit: "s", log: true,
					queries: []query{
						q(mean("scheduler_scheduling_attempt_duration_seconds", `@scheduler, result="scheduled"`), "attempt").or(noPods),
						q(mean("scheduler_scheduling_algorithm_duration_seconds", "@scheduler"), "of it, choosing a node").or(noPods),
						q(mean("scheduler_framework_extension_point_duration_seconds", `@scheduler, extension_point="Bind"`), "of it, binding").or(noPods),
					},
					tells: "Choosing is the scheduler's own work, one pod after another; binding is a write and goes on beside the next pod.",
					do:    "choosing: fewer nodes to score, cheaper constraints. Binding: see writes of the API server, and the client's limiter below.",
				}, {
					title: "Attempts: how long each took", kind: "heatmap", unit: "s",
					queries: []query{q(buckets("scheduler_scheduling_attempt_duration_seconds", "@scheduler"), "{{le}}").or(noPods)},
					tells:   "The number of attempts in each bucket. A second band is pods of another kind: with anti-affinity, or with volumes.",
					do:      "find the pods of the upper band by their constraints.",
				}, {
					title: "Attempts over 512 ms", unit: "percentunit", max: 1, warn: 0.1,
					queries: []query{q(`cluster:scheduler_scheduling_attempt_over_512ms:ratio_rate2m{@record}`, "over 512 ms").or(noPods)},
					tells:   "The share that SchedulerAttemptsSlow is about (over 10%). At half a second each, two pods a second find a node.",
					do:      "lower percentageOfNodesToScore (50 to 10 at 1,000 nodes); replace required anti-affinity by topology spread.",
				}, {
					title: "Mean attempt over 5 minutes", unit: "s", warn: 0.02,
					queries: []query{q(`cluster:scheduler_scheduling_attempt_duration_seconds:mean_rate5m{@record}`, "mean").or(noPods)},
					tells:   "What SchedulerLatencyCreep compares with the half hour before: growth that no threshold has caught yet.",
					do:      "look at it over a month, beside the number of nodes.",
				},
			}},
			{"Who waits", []panel{
				{
					title: "Pods that wait, by queue", unit: "short", warn: 100,
					queries: []query{q(`max by (queue) (scheduler_pending_pods{@scheduler})`, "{{queue}}")},
					tells:   "active waits for the scheduler, backoff for another try, unschedulable for a change of the cluster, gated for its gate.",
					do:      "active grows: the scheduler is the bottleneck. backoff: attempts fail and come back. unschedulable: no room, or no node fits.",
				}, {
					title: "Into the queues, by cause", unit: "ops", queries: []query{q(rate("scheduler_queue_incoming_pods_total", "@scheduler", "event"), "{{event}}").or(noPods)},
					tells: "Why pods come: new ones, or old ones that an event may have made schedulable.",
					do:    "many tries by events of nodes: a cluster that is full, in which every change wakes all that wait.",
				}, {
					title: "Pods without a node, by plugin", unit: "short",
					queries: []query{q(`sum by (plugin) (scheduler_unschedulable_pods{@scheduler})`, "{{plugin}}").or(noLeftOver)},
					tells:   "Which plugin turned all nodes down.",
					do:      "NodeResourcesFit: no room. InterPodAffinity, PodTopologySpread: constraints that cannot be met. TaintToleration: nodes that are not Ready.",
				}, {
					title: "From first try to a node, p99", unit: "s", log: true, warn: 5,
					queries: []query{q(p99("scheduler_pod_scheduling_sli_duration_seconds", "@scheduler", "attempts"), "attempts: {{attempts}}").or(noPods)},
					tells:   "Waiting in queues counts here, unlike in an attempt. By how many attempts it took.",
					do:      "long with one attempt: the queue is long. Long with many: the pods did not fit at first.",
				}, {
					title: "Preemption", unit: "ops",
					queries: []query{
						q(rate("scheduler_preemption_attempts_total", "@scheduler"), "attempts"),
						q(rate("scheduler_preemption_victims_sum", "@scheduler"), "victims"),
					},
					tells: "Pods that are evicted to make room for more important ones.",
					do:    "if it goes on and on, two sets of pods evict each other: compare their priorities.",
				}, {
					title: "The client's own limiter, p99", unit: "s", log: true, warn: 0.25,
					queries: []query{q(p99("rest_client_rate_limiter_duration_seconds", "@scheduler", "verb"), "{{verb}}")},
					tells:   "How long the scheduler holds back its own requests (50 a second, burst 100, by default). A pod is one POST. 4.95 ms is the first bucket: anything up to 5 ms.",
					do:      "raise clientConnection.qps and burst if the API server has room.",
				},
			}},
			{"What it costs to choose", []panel{
				{
					title: "Time by plugin", unit: "percentunit", stacked: true, w: 12,
					queries: []query{q(`topk(8, 10 * sum by (plugin) (rate(`+plugin+`_sum{@scheduler, extension_point!~".*Bind.*"}[@rate])))`, "{{plugin}}").or(noSample)},
					tells:   "Seconds of each plugin per second, the eight that take most; binding is left out, as it waits for the API server. Filters run on several goroutines, so the sum may pass 100%. The scheduler measures a tenth of its cycles; this is ten times that.",
					do:      "InterPodAffinity or PodTopologySpread on top: constraints that look at every node for every pod.",
				}, {
					title: "Time by extension point, p99", unit: "s", log: true, w: 12,
					queries: []query{q(p99("scheduler_framework_extension_point_duration_seconds", "@scheduler", "extension_point"), "{{extension_point}}").or(noPods)},
					tells:   "Filter grows with nodes, Score with the share of them that is scored, Bind with the API server.",
					do:      "the highest tells which knob: percentageOfNodesToScore (Score), constraints (Filter), the API server (Bind).",
				}, {
					title: "Nodes looked at for each pod", unit: "short",
					queries: []query{
						q(nodesPerPod("Filter"), "filtered").or(noPods),
						q(nodesPerPod("Score"), "scored").or(noPods),
						q(`max(scheduler_cache_size{@scheduler, type="nodes"})`, "nodes there are"),
					},
					tells: "Filtering stops when enough nodes are found: that is what percentageOfNodesToScore sets (0: from 50% down to 5% as the cluster grows, at least 100).",
					do:    "in a cluster of over 1,000 nodes scored should be far below nodes there are; if not, lower the percentage.",
				}, {
					title: "Share of nodes that is scored", unit: "percentunit", max: 1,
					queries: []query{q(nodesPerPod("Score")+` / (max(scheduler_cache_size{@scheduler, type="nodes"}) > 0)`, "scored").or(noPods)},
					tells:   "What percentageOfNodesToScore comes to. Under 100 nodes all are looked at, whatever it says.",
					do:      "try a smaller share and compare the attempt's p99; placement gets a little less even.",
				}, {
					title: "What the scheduler knows", unit: "short", queries: []query{q(`max by (type) (scheduler_cache_size{@scheduler})`, "{{type}}")},
					tells: "Nodes and pods in its cache; assumed pods have a node and are not bound yet.",
					do:    "assumed pods that climb: binding is slow, so the API server or the client's limiter.",
				}, {
					title: "Who leads", kind: "state-timeline", unit: "bool_yes_no", moves: []string{"kill kube-scheduler", "etcdQuota"},
					queries: []query{q(`max by (instance) (leader_election_master_status{@scheduler})`, "{{instance}}")},
					tells:   "One replica holds the lease and works, the others stand by. No row that says yes: nothing is scheduled.",
					do:      "a lease moves within 15 s of its holder's death; longer: mend writes to the API server first.",
				},
			}},
			processRow(jobScheduler, true),
		},
	}
}

// nodesPerPod queries the number of nodes that an extension point runs on for each
// attempt: that of the plugin with most nodes, as some skip nodes. An attempt counts
// at its end, so a window may have nodes and no attempt: then there is no data.
func nodesPerPod(point string) string {
	return `max(sum by (plugin) (rate(scheduler_plugin_evaluation_total{@scheduler, extension_point="` + point + `"}[@rate]))) / (` +
		rate("scheduler_schedule_attempts_total", "@scheduler") + ` > 0)`
}
