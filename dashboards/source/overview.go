package source

// overview answers in a minute: is it well, and if not, whose dashboard is next.
func overview() board {
	return board{
		uid: "stormglass-overview", title: "Stormglass / Overview", jobs: jobAll,
		tells: "Is the control plane well, and which component is the bottleneck. The four metrics that tell most come first.",
		rows: []row{
			{"The four key metrics", []panel{
				{
					title: "etcd_disk_wal_fsync_duration_seconds", unit: "s", w: 12, log: true, warn: 0.010, bad: 0.016, more: "stormglass-etcd",
					moves: []string{"slowFsync", "diskContention"}, queries: walFsync(),
					tells: "p99 and median of the write-ahead log's fsync. Every write of the cluster waits for it, so it is the earliest warning there is: it rises before any request does. A hitch lifts the p99 alone, a slow disk both.",
					do:    "p99 above 10 ms: give etcd a disk of its own and find out who else writes to this one.",
				}, {
					title: "apiserver_request_duration_seconds by verb", unit: "s", w: 12, log: true, warn: 1, more: "stormglass-apiserver",
					queries: []query{q(`cluster_verb:apiserver_request_duration_seconds:p99_rate5m{@record}`, "{{verb}}")},
					tells:   "p99 over 5 minutes. POST, PUT and PATCH rise with etcd, LIST with the number of objects, all of them together with CPU, descriptors or queues.",
					do:      "see which verbs rise together, then follow Work that stands, below.",
				}, {
					title: "scheduler_scheduling_attempt_duration_seconds", unit: "s", w: 12, log: true, warn: 0.5, bad: 1, more: "stormglass-scheduler",
					queries: []query{q(p99("scheduler_scheduling_attempt_duration_seconds", "@scheduler", "result"), "{{result}}").or(noPods)},
					tells:   "p99 of one attempt to place one pod, filter to bind. It grows with the nodes, with anti-affinity and spread constraints, and with the share of nodes that are scored.",
					do:      "above half a second lower percentageOfNodesToScore and look at the time of each plugin.",
				}, {
					title: "etcd_server_leader_changes_seen_total", unit: "short", w: 12, warn: 1.5, bad: 3, more: "stormglass-etcd", moves: []string{"pause etcd", "partition etcd"},
					queries: []query{q(`cluster:etcd_server_leader_changes_seen:increase1h{@record}`, "in the last hour")},
					tells:   "Changes of leader within the last hour, as the member that saw most of them counts. More than one means trouble between the members or a slow disk. Writes stop during each.",
					do:      "look at the peers' round trips, then at WAL fsync of the old leader just before.",
				},
			}},
			{"Which component is the bottleneck", []panel{
				{
					title: "Work that stands", unit: "short", w: 12, h: 10, log: true, min: 0.01, moves: []string{"slowFsync", "networkDelay", "pause etcd", "kill etcd", "webhook slow", "partition"},
					queries: []query{
						q(rate("apiserver_request_duration_seconds_sum", `@api, verb!~"WATCH|CONNECT"`), "in API servers, all"),
						q(rate("apiserver_flowcontrol_request_wait_duration_seconds_sum", "@api"), "in API servers, queued by priority and fairness"),
						q(rate("etcd_request_duration_seconds_sum", "@api"), "in API servers, waiting for etcd"),
						q(rate("apiserver_admission_webhook_admission_duration_seconds_sum", "@api"), "in API servers, waiting for webhooks").or(noWebhook),
						q(rate("scheduler_scheduling_attempt_duration_seconds_sum", "@scheduler"), "pods in the scheduler's hands").or(noPods),
						q(rate("workqueue_queue_duration_seconds_sum", "@kcm"), "keys in controllers' queues"),
						q(rate("rest_client_rate_limiter_duration_seconds_sum", jobClients+chosen), "requests held by clients' own limiters").or(noRateLimit),
					},
					tells: "Seconds waited per second: how many requests, pods or keys stand at each place on average (Little's law), all in one unit. The bottleneck is the highest line that is part of no higher one.",
					do:    "open the dashboard of the highest: etcd, API server (queues, webhooks), scheduler, or controller manager (queues, limiters).",
				}, {
					title: "How full", unit: "percentunit", w: 12, h: 10, max: 1, warn: 0.8, bad: 0.95, moves: []string{"descriptorLimit", "etcdQuota", "webhook slow"},
					queries: []query{
						q(`max(sum by (instance, priority_level) (apiserver_flowcontrol_current_executing_seats{@api, priority_level!="exempt"}) / (sum by (instance, priority_level) (apiserver_flowcontrol_current_limit_seats{@api, priority_level!="exempt"}) > 0))`, "seats of the fullest priority level"),
						q(`max by (job) (instance:process_open_fds:limit_ratio{@irecord})`, "descriptors of {{job}}"),
						q(`max(instance:etcd_mvcc_db_total_size:quota_ratio{@irecord})`, "etcd's quota"),
						q(`max(sum by (instance) (rate(scheduler_scheduling_algorithm_duration_seconds_sum{@scheduler}[@rate])))`, "the scheduler's loop"),
					},
					tells: "What has a bound, against that bound. The scheduler's loop places one pod after another: at 100% it is busy all the time.",
					do:    "whatever is near 100% is the next to fail: raise the bound, or lower what fills it.",
				}, {
					title: "CPU by component", unit: "short", stacked: true, queries: []query{q(rate("process_cpu_seconds_total", "@all", "job"), "{{job}}")},
					tells: "Cores in use. If the sum is what the machine has, the machine is the bottleneck and everything else here follows from it.",
					do:    "see who grew; on one machine the load generator competes with what it measures.",
				}, {
					title: "Memory by component", unit: "bytes", stacked: true, queries: []query{q(`sum by (job) (process_resident_memory_bytes{@all})`, "{{job}}")},
					tells: "Resident memory. Objects and watches in caches, and answers to large LISTs.",
					do:    "a climb that does not end with the load is worth a second look: see LISTs and watches of the API server.",
				}, {
					title: "Components that answer", kind: "state-timeline", unit: "bool_on_off", warn: 0.5, falls: true, moves: []string{"kill", "restart"},
					queries: []query{q(`min by (instance) (up{@all})`, "{{instance}}")},
					tells:   "Whether the last scrape of each succeeded. Everything else about a component is blind while it does not.",
					do:      "start it again. If it runs, look at its CPU, memory and descriptors, and at who may read its metrics.",
				},
			}},
			{"What users notice", []panel{
				{
					title: "Requests that miss their objective", unit: "percentunit", warn: 0.01, bad: 0.144, more: "stormglass-apiserver", moves: []string{"kill etcd", "pause etcd", "webhook slow", "partition"},
					queries: []query{q(`cluster_class:apiserver_request_slow:ratio_rate5m{@record}`, "{{class}}")},
					tells:   "Share of requests over 1 s (writes and reads of one object) or 30 s (lists), over 5 minutes. 14.4% burns a month of budget in two days; no 5xx is needed to see it.",
					do:      "follow the key metric that rose first.",
				}, {
					title: "Refused and failed answers", unit: "reqps", moves: []string{"kill etcd", "kill kube-apiserver", "etcdQuota", "webhook closed", "partition kube-apiserver"}, more: "stormglass-apiserver",
					queries: []query{q(rate("apiserver_request_total", `@api, code=~"4..|5.."`, "code"), "{{code}}").or(noRefusal)},
					tells:   "409 is two writers of one object, 429 priority and fairness pushing back, 5xx trouble behind the API server.",
					do:      "follow the code: 429 to the queues, 500 to webhooks and etcd's quota, 504 to etcd.",
				}, {
					title: "Pods that wait for a node", unit: "short", warn: 100, more: "stormglass-scheduler",
					queries: []query{q(`cluster_queue:scheduler_pending_pods:max{@record}`, "{{queue}}")},
					tells:   "active waits for the scheduler; backoff and unschedulable wait for the cluster.",
					do:      "active: the scheduler is too slow, or its client is held back. unschedulable: read the pods' events.",
				}, {
					title: "Alerts that fire", kind: "table", unit: "short", w: 24, h: 6, hidden: []string{"Time", "__name__", "alertstate", "Value"},
					queries: []query{{expr: `ALERTS{alertstate="firing", @record}`, empty: &noAlerts}},
					tells:   "What fires at the end of the range, with its labels: the alerts of alerts/, and whatever else this Prometheus evaluates.",
					do:      "each of alerts/ has a runbook in its annotations and in docs/reference/alerts.md.",
				},
			}},
		},
	}
}
