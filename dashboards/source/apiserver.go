package source

import "strings"

// short leaves out requests that last as long as their client likes.
const short = `@api, verb!~"WATCH|WATCHLIST|CONNECT|PROXY", subresource!~"log|exec|attach|portforward|proxy"`

// failedOpen counts as WebhookFailingOpen does: a counter that appears with its
// first event has no rate, so what was not there 5 minutes ago counts as it is.
const failedOpen = `sum by (name) (
  apiserver_admission_webhook_fail_open_count{@api}
    unless apiserver_admission_webhook_fail_open_count{@api} offset 5m
    and on (cluster, job, instance) up{@api} offset 5m
  or increase(apiserver_admission_webhook_fail_open_count{@api}[5m])
)`

// apiServer follows a request's way: traffic, queues, admission, etcd; then watches and LISTs.
func apiServer() board {
	const duration = "apiserver_request_duration_seconds"
	mutating := strings.Replace(short, `verb!~"WATCH|WATCHLIST|CONNECT|PROXY"`, `verb=~"POST|PUT|PATCH|APPLY|DELETE"`, 1)
	return board{
		uid: "stormglass-apiserver", title: "Stormglass / API server", jobs: jobAPI,
		tells: "What is asked of it and how long it takes; who queues; what watches and LISTs cost; what webhooks and etcd add.",
		rows: []row{
			{"Traffic and latency", []panel{
				{
					title: "Requests by verb", unit: "reqps", queries: []query{q(rate("apiserver_request_total", "@api", "verb"), "{{verb}}")},
					tells: "A storm is a change of this mix, not only of its height.",
					do:    "a verb that grew: see which resource, and in the audit log which user agent.",
				}, {
					title: "Refused and failed answers", unit: "reqps", moves: []string{"kill etcd", "kill kube-apiserver", "etcdQuota", "webhook closed", "partition kube-apiserver"},
					queries: []query{q(rate("apiserver_request_total", `@api, code=~"4..|5.."`, "code"), "{{code}}").or(noRefusal)},
					tells:   "401 and 403 who may not, 404 and 410 what is gone, 409 two writers, 429 priority and fairness, 5xx trouble behind.",
					do:      "504: etcd or a timeout. 503: an aggregated API. 500: a webhook, or no space in etcd. 410: watchers that were too slow.",
				}, {
					title: "Requests that miss their objective", unit: "percentunit", warn: 0.01, bad: 0.144, moves: []string{"kill etcd", "pause etcd", "webhook slow", "partition"},
					queries: []query{q(`cluster_class:apiserver_request_slow:ratio_rate5m{@record}`, "{{class}}")},
					tells:   "Share over 1 s (writes, reads of one object) or 30 s (lists). APIServerLatencyBudgetFastBurn fires at 14.4%, also over the hour.",
					do:      "mutating alone: etcd or webhooks. All classes: CPU, descriptors or a flood.",
				}, {
					title: "p99 by verb", unit: "s", log: true, warn: 1, moves: []string{"slowFsync", "networkDelay", "pause etcd", "kill etcd", "partition"},
					queries: []query{q(p99(duration, short, "verb"), "{{verb}}")},
					tells:   "At the server, without the network and without waits in the client. Watches and streams are left out.",
					do:      "writes rise: etcd's fsync. LIST: objects and selectors. GET and LIST and writes together: CPU, queues.",
				}, {
					title: "p99 by scope", unit: "s", log: true, warn: 1, bad: 30,
					queries: []query{q(p99(duration, short+`, scope!=""`, "scope"), "{{scope}}")},
					tells:   "resource is one object (objective 1 s), namespace and cluster are lists (30 s).",
					do:      "cluster slow: a client lists everything; see LISTs, below.",
				}, {
					title: "Writes: how long each took", kind: "heatmap", unit: "s", moves: []string{"slowFsync"},
					queries: []query{q(buckets(duration, mutating), "{{le}}")},
					tells:   "The number of writes in each bucket. A second band is a kind of write that waits for something: a webhook, a lock, a lost leader.",
					do:      "see which resource the slow band belongs to.",
				},
			}},
			{"Inflight, priority and fairness", []panel{
				{
					title: "Requests in flight", unit: "short", warn: 400, moves: []string{"kill etcd", "webhook slow"}, queries: []query{q(`max by (request_kind) (apiserver_current_inflight_requests{@api})`, "{{request_kind}}")},
					tells: "Work inside the API server, of the one that has most. The defaults allow each 400 that read and 200 that change, together 600 seats for priority and fairness.",
					do:    "it stands: look at what requests wait for, etcd or webhooks, before raising the limit.",
				}, {
					title: "Seats in use by level", unit: "percentunit", max: 1, warn: 0.8, bad: 0.95, moves: []string{"webhook slow"},
					queries: []query{q(`sum by (priority_level) (apiserver_flowcontrol_current_executing_seats{@api, priority_level!="exempt"}) / (sum by (priority_level) (apiserver_flowcontrol_current_limit_seats{@api, priority_level!="exempt"}) > 0)`, "{{priority_level}}")},
					tells:   "Against what the level may have now: levels lend seats to each other. A LIST takes several.",
					do:      "a full level: find its busiest flow schema and slow that client down, or give it a level of its own.",
				}, {
					title: "Requests in queues by level", unit: "short", moves: []string{"webhook slow"},
					queries: []query{q(`sum by (priority_level) (apiserver_flowcontrol_current_inqueue_requests{@api})`, "{{priority_level}}")},
					tells:   "Who is made to wait. The API server may be idle otherwise: averages over all levels do not show it.",
					do:      "see the level's flow schemas; queues that stay are a client that asks for more than its share.",
				}, {
					title: "Wait for a seat, p99 by level", unit: "s", log: true, warn: 1, moves: []string{"webhook slow"},
					queries: []query{q(p99("apiserver_flowcontrol_request_wait_duration_seconds", "@api", "priority_level"), "{{priority_level}}")},
					tells:   "Time here is in the client's latency and in no handler's. 4.95 ms is the first bucket: anything up to 5 ms.",
					do:      "node-high or system waiting is urgent: heartbeats and leases are in there.",
				}, {
					title: "Waited over 1 s", unit: "percentunit", warn: 0.1, moves: []string{"webhook slow"},
					queries: []query{q(`cluster_level:apiserver_flowcontrol_waited_over_1s:ratio_rate2m{@record}`, "{{priority_level}}")},
					tells:   "The share that APIServerPriorityLevelStarved is about (over 10%).",
					do:      "find the flow that fills the level; only then raise shares or --max-requests-inflight.",
				}, {
					title: "Rejected with 429", unit: "reqps", warn: 0.1, moves: []string{"webhook slow"},
					queries: []query{q(`cluster_level:apiserver_flowcontrol_rejected_requests:rate2m{@record}`, "{{priority_level}} {{reason}}").or(noReject)},
					tells:   "Clients try again, which keeps queues full. No 5xx is counted, so error rates look well.",
					do:      "queue-full: bursts. time-out: no seats for long. concurrency-limit: a level without queues.",
				},
			}},
			{"Watches", []panel{
				{
					title: "Watches open", unit: "short", moves: []string{"watches", "kill kube-apiserver"}, queries: []query{
						q(`cluster:apiserver_longrunning_requests:watches{@record}`, "all"),
						q(`topk(7, sum by (resource) (apiserver_longrunning_requests{@api, verb="WATCH"}))`, "{{resource}}"),
					},
					tells: "A kubelet and its kube-proxy hold about 18. Each is a stream and memory on the server; a dip is a mass reconnect, followed by LISTs.",
					do:    "a dip: which server restarted, or whose connections a load balancer cut. A climb: who opens them.",
				}, {
					title: "Events sent by resource", unit: "ops", moves: []string{"changes"}, queries: []query{q(`topk(8, `+rate("apiserver_watch_events_total", "@api", "resource")+`)`, "{{resource}}")},
					tells: "Changes times watchers. About 60 µs of CPU each.",
					do:    "cut the fan-out: fewer watchers of the whole cluster, fewer writes of much-watched objects.",
				}, {
					title: "Bytes sent by resource", unit: "Bps", moves: []string{"changes"}, queries: []query{q(`topk(8, `+rate("apiserver_watch_events_sizes_sum", "@api", "resource")+`)`, "{{resource}}")},
					tells: "Large objects that change often cost more than their count tells.",
					do:    "let watchers ask for metadata only; split what changes often from what is large.",
				}, {
					title: "Events that took over 250 ms", unit: "percentunit", warn: 0.05, moves: []string{"watches slow"},
					queries: []query{q(`topk(8, cluster_resource:apiserver_watch_events_dispatch_over_250ms:ratio_rate2m{@record})`, "{{group}} {{resource}}")},
					tells:   "From etcd's event to the watcher's buffer. Controllers act on old news while this is high.",
					do:      "the server's CPU; the resource with most watchers times changes.",
				}, {
					title: "Watches that were ended for being slow", unit: "cps", moves: []string{"watches slow"},
					queries: []query{q(rate("apiserver_terminated_watchers_total", "@api", "resource"), "{{resource}}").or(noTerminate)},
					tells:   "Their clients list again: load at the worst moment.",
					do:      "give slow clients CPU, narrow their watches, slow down the clients that write.",
				}, {
					title: "Objects sent to begin a watch", unit: "ops",
					queries: []query{q(`topk(8, `+rate("apiserver_init_events_total", "@api", "resource")+`)`, "{{resource}}").or(noRelist)},
					tells:   "A relist by another name: a watch that begins gets what there is first.",
					do:      "peaks after a restart are its price: restart API servers one by one.",
				},
			}},
			{"LISTs", []panel{
				{
					title: "LISTs by resource", unit: "reqps", moves: []string{"requests list"}, queries: []query{q(`topk(8, `+rate("apiserver_request_total", `@api, verb="LIST"`, "resource")+`)`, "{{resource}}")},
					tells: "Informers list once. What goes on here asks in a loop.",
					do:    "find the user agent in the audit log; let it use an informer.",
				}, {
					title: "Objects read for LISTs", unit: "ops", warn: 10000, moves: []string{"requests list"},
					queries: []query{q(`topk(8, cluster_resource:apiserver_storage_list_fetched_objects:rate2m{@record})`, "{{group}} {{resource}}, {{storage}}").or(noLists)},
					tells:   "Each is read, filtered and encoded for each LIST. APIServerHeavyLists fires over 10,000 a second.",
					do:      "page with limit, ask for metadata only, or watch instead. etcd rather than watchcache: a consistent LIST past the cache.",
				}, {
					title: "Objects returned for LISTs", unit: "ops", moves: []string{"requests list"},
					queries: []query{q(`topk(8, `+rate("apiserver_storage_list_returned_objects_total", "@api", "resource")+`)`, "{{resource}}").or(noLists)},
					tells:   "Far fewer than were read: a selector that no index serves.",
					do:      "select by namespace or by spec.nodeName, which have indexes.",
				}, {
					title: "LIST p99 by resource", unit: "s", log: true, warn: 30, w: 12,
					queries: []query{q(`topk(8, `+p99(duration, `@api, verb="LIST"`, "resource")+`)`, "{{resource}}").or(noLists)},
					tells:   "30 s is the objective of lists of a namespace or of all.",
					do:      "many objects: limit and continue. Few objects and slow: the server's CPU or a wait for a fresh cache.",
				}, {
					title: "Answered to LISTs", unit: "Bps", w: 12, moves: []string{"requests list"},
					queries: []query{q(`topk(8, `+rate("apiserver_response_sizes_sum", `@api, verb="LIST"`, "resource")+`)`, "{{resource}}")},
					tells:   "Bytes per second. Memory of the server follows the largest of these answers.",
					do:      "protobuf instead of JSON, metadata only, pages.",
				},
			}},
			{"Admission and webhooks", []panel{
				{
					title: "Admission p99 by step", unit: "s", log: true, warn: 0.5, moves: []string{"webhook slow"},
					queries: []query{q(p99("apiserver_admission_step_admission_duration_seconds", "@api", "type", "operation"), "{{type}} {{operation}}")},
					tells:   "admit are the mutating plugins and webhooks, validate the others. It is part of every write's latency. The last edge is 2.5 s: that reads \"or longer\".",
					do:      "slow: the webhook beside; if none is, the plugin that looks at most objects.",
				}, {
					title: "Webhook, p99 and mean", unit: "s", log: true, warn: 0.5, moves: []string{"webhook slow"},
					queries: []query{
						q(p99("apiserver_admission_webhook_admission_duration_seconds", "@api", "name"), "p99 {{name}}").or(noWebhook),
						q(mean("apiserver_admission_webhook_admission_duration_seconds", "@api", "name"), "mean {{name}}").or(noWebhook),
					},
					tells: "The call as the API server sees it. The write keeps its seat all that time. Between edges of 2.5, 10 and 25 s the p99 says no more than in which it is; the mean is exact.",
					do:    "scale or mend the webhook; narrow its rules; timeoutSeconds of 2 or 3 rather than 10.",
				}, {
					title: "Webhook calls over 500 ms", unit: "percentunit", warn: 0.1, moves: []string{"webhook slow"},
					queries: []query{q(`cluster_name:apiserver_admission_webhook_over_500ms:ratio_rate2m{@record}`, "{{name}} {{type}}").or(noWebhook)},
					tells:   "The share that WebhookSlow is about (over 10%).",
					do:      "as for the p99; a failurePolicy of Fail turns a slow webhook into refused writes.",
				}, {
					title: "Failed open", unit: "short", bad: 0.5, w: 12, moves: []string{"webhook open"},
					queries: []query{q(failedOpen, "{{name}}").or(noOpen)},
					tells:   "Writes of the last 5 minutes that passed although the webhook could not be asked. What it enforces is not enforced, and no error is visible.",
					do:      "mend it, then go through what was written meanwhile.",
				}, {
					title: "Refused by webhooks", unit: "cps", w: 12, moves: []string{"webhook closed"},
					queries: []query{q(rate("apiserver_admission_webhook_rejection_count", "@api", "name", "error_type"), "{{name}} {{error_type}}").or(noVeto)},
					tells:   "no_error is its verdict; calling_webhook_error is a webhook that is down and blocks writes.",
					do:      "calling_webhook_error: bring it back; in an emergency delete its configuration and restore it afterwards.",
				},
			}},
			{"etcd, as the API server sees it", []panel{
				{
					title: "Calls to etcd, p99 by operation", unit: "s", log: true, warn: 0.1, moves: []string{"slowFsync", "networkDelay kube-apiserver", "pause etcd", "kill etcd", "partition"},
					queries: []query{q(p99("etcd_request_duration_seconds", "@api", "operation"), "{{operation}}")},
					tells:   "What is left of a request after this is the API server's own: queueing, admission, encoding.",
					do:      "compare with WAL fsync: both slow, the disk; this alone, the network between them, or CPU.",
				}, {
					title: "Calls over 100 ms", unit: "percentunit", warn: 0.1, moves: []string{"networkDelay", "pause etcd", "kill etcd", "partition kube-apiserver"},
					queries: []query{q(`cluster_operation:etcd_request_over_100ms:ratio_rate2m{@record}`, "{{operation}}")},
					tells:   "The share that APIServerEtcdSlow is about (over 10%).",
					do:      "what etcd's dashboard says; if all is well there, measure the round trip.",
				}, {
					title: "Calls that failed", unit: "cps", moves: []string{"kill etcd", "etcdQuota", "partition"},
					queries: []query{q(rate("etcd_request_errors_total", "@api", "operation"), "{{operation}}").or(noEtcdError)},
					tells:   "Timeouts, lost leaders, no space. Conflicts of two writers are not counted.",
					do:      "see who leads in etcd's dashboard, and its quota.",
				}, {
					title: "Most objects", kind: "table", unit: "short", w: 12,
					hidden: []string{"Time"}, renamed: map[string]string{"Value": "objects"},
					queries: []query{{expr: `topk(12, max by (group, resource) (apiserver_resource_objects{@api}))`}},
					tells:   "Objects of each resource, as the watch cache counts them.",
					do:      "one that grows without bound: who makes it, and whether it has an owner or a TTL.",
				}, {
					title: "Size of the database, as reported to the API server", unit: "bytes", w: 12,
					queries: []query{q(`max by (storage_cluster_id) (apiserver_storage_size_bytes{@api})`, "{{storage_cluster_id}}")},
					tells:   "On a managed control plane this may be all that is seen of etcd.",
					do:      "keep it below the quota (2 GiB by default, 8 GiB at most).",
				},
			}},
			{"Who is let in", []panel{
				{
					title: "Authentication", unit: "cps", queries: []query{q(rate("authentication_attempts", "@api", "result"), "{{result}}")},
					tells: "failure and error are answered with 401.",
					do:    "failures: expired certificates or tokens, clocks that differ.",
				}, {
					title: "Authorization by who decided", unit: "cps", queries: []query{q(rate("apiserver_authorization_decisions_total", "@api", "type", "decision"), "{{type}} {{decision}}")},
					tells: "Node, RBAC, webhooks. Requests that none of them allows get a 403 and are not counted here.",
					do:    "a webhook on top: its latency is part of every request.",
				}, {
					title: "TLS handshakes that failed", unit: "cps",
					queries: []query{q(rate("apiserver_tls_handshake_errors_total", "@api", "instance"), "{{instance}}")},
					tells:   "Clients that give up before they get through, port scans, wrong certificates. Not a server without descriptors: it accepts no connection, so none of them comes to a handshake.",
					do:      "with latency: connections come faster than they can be taken. Without: see who it is in the log.",
				},
			}},
			processRow(jobAPI, true),
		},
	}
}
