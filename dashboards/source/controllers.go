package source

// controllerManager: queues, the clients' own limits, leases.
func controllerManager() board {
	return board{
		uid: "stormglass-controller-manager", title: "Stormglass / Controller manager", jobs: jobKCM,
		tells: "Whether the loops keep up: their queues, what holds their clients back, who holds the lease.",
		rows: []row{
			{"Queues", []panel{
				{
					title: "Keys that wait", unit: "short", warn: 50,
					queries: []query{q(`topk(8, max by (name) (workqueue_depth{@kcm}))`, "{{name}}")},
					tells:   "The eight deepest queues. A depth is a level, not a rate: one that stays up is a loop that does not keep up.",
					do:      "up with CPU idle: its client waits for its limiter, beside. Up with CPU busy: its --concurrent-*-syncs.",
				}, {
					title: "Keys that have stood for 2 minutes", unit: "short", warn: 50,
					queries: []query{q(`topk(8, cluster_name:workqueue_depth:standing2m{@record})`, "{{name}}")},
					tells:   "The least depth of the last 2 minutes: what never drained. ControllerQueueDeep fires over 50.",
					do:      "find who makes the changes, and whether keys fail and come back.",
				}, {
					title: "Wait in the queue, p99", unit: "s", log: true, warn: 1,
					queries: []query{q(`topk(8, `+p99("workqueue_queue_duration_seconds", "@kcm", "name")+`)`, "{{name}}")},
					tells:   "Before a worker takes the key. Few keys, each slow, wait as long as many.",
					do:      "compare with the work itself, below: slow work is the API, or a large object.",
				}, {
					title: "Waited over 1 s", unit: "percentunit", max: 1, warn: 0.1,
					queries: []query{q(`topk(8, cluster_name:workqueue_waited_over_1s:ratio_rate2m{@record})`, "{{name}}")},
					tells:   "The share that ControllerQueueSlow is about (over 10%).",
					do:      "as for the p99; few keys, each slow, need more workers, not fewer keys.",
				}, {
					title: "Work on a key, p99", unit: "s", log: true, warn: 1,
					queries: []query{q(`topk(8, `+p99("workqueue_work_duration_seconds", "@kcm", "name")+`)`, "{{name}}")},
					tells:   "From taking a key to being done with it, waits for its own client included.",
					do:      "replicaset and job make many objects for one key: slow is normal in a rollout. Others: API latency by verb.",
				}, {
					title: "Keys added", unit: "ops", queries: []query{q(`topk(8, `+rate("workqueue_adds_total", "@kcm", "name")+`)`, "{{name}}")},
					tells: "What the loops are asked to do.",
					do:    "endpointslice or garbage_collector_* on top after a storm is its tail; all day long it is a client that loops.",
				}, {
					title: "Keys that came back", unit: "ops", queries: []query{q(`topk(8, `+rate("workqueue_retries_total", "@kcm", "name")+`)`, "{{name}}")},
					tells: "Failed, or to be looked at later.",
					do:    "the controller's log says what fails; 409 is two controllers of one object.",
				}, {
					title: "Longest work under way", unit: "s", warn: 30,
					queries: []query{q(`topk(8, max by (name) (workqueue_longest_running_processor_seconds{@kcm}))`, "{{name}}")},
					tells:   "A line that climbs steadily is a worker that hangs.",
					do:      "take a goroutine profile before restarting it.",
				}, {
					title: "Nodes of a zone that are lost", unit: "percentunit", max: 1, warn: 0.05, bad: 0.55, moves: []string{"nodeFailure"}, more: "stormglass-nodes",
					queries: []query{q(`cluster_zone:node_collector_unhealthy_nodes:ratio{@record}`, "{{zone}}").or(noNodes)},
					tells:   "What the node lifecycle controller believes. Over 55% it slows evictions down, as the fault is then likely to be its own view.",
					do:      "see what the nodes have in common, and whether their heartbeats arrive.",
				},
			}},
			{"Its clients", []panel{
				{
					title: "Held back by the client's own limiter, p99", unit: "s", log: true, warn: 0.25,
					queries: []query{q(p99("rest_client_rate_limiter_duration_seconds", "@kcm", "verb"), "{{verb}}")},
					tells:   "--kube-api-qps is 20 and --kube-api-burst 30 by default. While this is high the API server is not the bottleneck.",
					do:      "raise both in steps while write latency keeps to its objective. After a mass failure leave them: the limit keeps the cluster stable.",
				}, {
					title: "Requests held back over 250 ms", unit: "percentunit", max: 1, warn: 0.1,
					queries: []query{q(`job:rest_client_rate_limiter_over_250ms:ratio_rate2m{@record}`, "{{job}}")},
					tells:   "The share that ClientThrottled is about (over 10%), of the scheduler too.",
					do:      "raise the limits of whichever it is, while write latency keeps to its objective.",
				}, {
					title: "Requests by code", unit: "reqps", queries: []query{q(rate("rest_client_requests_total", "@kcm", "code", "method"), "{{method}} {{code}}")},
					tells: "What it asks of the API server, and what it gets.",
					do:    "a flat top is the limiter. 409: another writer. 429: its priority level is full.",
				}, {
					title: "Requests as its client sees them, p99", unit: "s", log: true, warn: 1, moves: []string{"slowFsync", "networkDelay", "pause etcd"},
					queries: []query{q(p99("rest_client_request_duration_seconds", "@kcm", "verb"), "{{verb}}")},
					tells:   "From the call to the answer: waits for its own limiter and repeated tries count.",
					do:      "compare with the limiter's p99, above. Slower than that and than the server says: retries, the network, or its own CPU.",
				}, {
					title: "Pods evicted", unit: "ops", warn: 1, moves: []string{"nodeFailure"},
					queries: []query{q(rate("taint_eviction_controller_pod_deletions_total", "@kcm"), "pods")},
					tells:   "From nodes that were lost, once their tolerations have run out. Each is made anew, scheduled and started elsewhere.",
					do:      "EvictionStorm fires over one a second: cordon nothing more, and bring nodes back if you can.",
				}, {
					title: "EndpointSlices changed", unit: "ops",
					queries: []query{q(rate("endpoint_slice_controller_changes", "@kcm", "operation"), "{{operation}}").or(noSlices)},
					tells:   "The last hop of a rollout. Each change goes to every node.",
					do:      "far more than pods: many Services select the same pods.",
				},
			}},
			{"Leases", []panel{
				{
					title: "Who leads", kind: "state-timeline", unit: "bool_yes_no", w: 12, moves: []string{"kill kube-controller-manager", "etcdQuota"},
					queries: []query{q(`max by (name, instance) (leader_election_master_status{`+jobClients+chosen+`})`, "{{name}}: {{instance}}")},
					tells:   "Of the schedulers too, while all instances are chosen. No yes: nothing is replaced and no node is judged.",
					do:      "a lease moves within about 15 s of its holder's death; longer: mend writes to the API server first.",
				}, {
					title: "Lease changes in an hour", unit: "short", w: 12, warn: 4, moves: []string{"kill kube-controller-manager", "kill kube-scheduler", "etcdQuota"},
					queries: []query{q(`sum by (name) (changes(leader_election_master_status{`+jobClients+chosen+`}[1h]))`, "{{name}}")},
					tells:   "Gains and losses. LeaseChurn fires at 4: holders cannot renew in time.",
					do:      "PUT latency of leases, etcd's leader changes, CPU and restarts of the replicas.",
				},
			}},
			processRow(jobKCM, true),
		},
	}
}
