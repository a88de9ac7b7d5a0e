package source

// nodes: nodes and pods, as the control plane and as the simulated kubelets see them.
func nodes() board {
	const leases = `job="kube-apiserver", cluster=~"$cluster", resource="leases"`
	return board{
		uid: "stormglass-nodes", title: "Stormglass / Nodes and workload", jobs: `job=~"loadgen|kube-controller-manager"`,
		tells: "Nodes and pods from both sides: what the API server says, and what the simulated kubelets know. The gap is a failure that was not noticed yet.",
		rows: []row{
			{"Nodes", []panel{
				{
					title: "Nodes Ready", unit: "short", moves: []string{"nodeFailure"}, queries: []query{
						q(`sum(stormglass_workload_nodes_ready{@generator})`, "as the API server says"),
						q(`sum(stormglass_nodes_ready{@generator})`, "as the kubelets know").or(noKubelets),
					},
					tells: "The controller manager waits for its grace period (40 s by default) before it says NotReady.",
					do:    "Ready on one side only: heartbeats do not arrive, or no controller manager judges them. See leases, beside.",
				}, {
					title: "Nodes of a zone, as the controller manager counts them", unit: "short", moves: []string{"nodeFailure"}, queries: []query{
						q(`max by (zone) (node_collector_zone_size{@kcm})`, "{{zone}}").or(noNodes),
						q(`max by (zone) (node_collector_unhealthy_nodes_in_zone{@kcm})`, "{{zone}} not Ready").or(noNodes),
					},
					tells: "Works on any cluster, without simulated nodes.",
					do:    "several zones at once: their path to the API server. One zone: the zone.",
				}, {
					title: "Heartbeats missed", unit: "cps",
					queries: []query{q(rate("stormglass_node_heartbeats_missed_total", "@generator", "cause"), "{{cause}}").or(noKubelets)},
					tells:   "Renewals not acknowledged before the next was due, and by whose fault: the server's, or ours.",
					do:      "generator: the run measured its own machine. server: writes were slower than the heartbeat.",
				}, {
					title: "Heartbeat p99", unit: "s", log: true, warn: 1,
					queries: []query{q(p99("stormglass_node_heartbeat_seconds", "@generator"), "p99").or(noKubelets)},
					tells:   "A lease renewal from its intended start. With thousands of nodes this is the most frequent write there is.",
					do:      "slow with a sound fsync: the priority level node-high, or the server's CPU.",
				}, {
					title: "Lease writes, at the server", unit: "reqps", moves: []string{"etcdQuota"},
					queries: []query{q(`sum by (verb) (rate(apiserver_request_total{`+leases+`, verb=~"PUT|PATCH|POST"}[@rate]))`, "{{verb}}").or(noLease)},
					tells:   "One a node each 10 s, and a few for leader election.",
					do:      "fewer than nodes / 10: heartbeats are lost.",
				}, {
					title: "Watches of the nodes", unit: "short", moves: []string{"nodeFailure"}, queries: []query{q(`sum(stormglass_node_watches{@generator})`, "open").or(noKubelets)},
					tells: "About 18 for each node, as a real kubelet and its kube-proxy hold.",
					do:    "a dip: connections were cut. See restarts of watches, below.",
				}, {
					title: "Watches of the nodes, begun again", unit: "cps",
					queries: []query{q(rate("stormglass_node_watch_restarts_total", "@generator", "kind"), "{{kind}}").or(noKubelets)},
					tells:   "reconnect goes on where it was; relist gets everything anew and is what hurts.",
					do:      "relists: the watch cache was too small for the gap, or the server is new.",
				}, {
					title: "Requests of the nodes", unit: "reqps",
					queries: []query{q(rate("stormglass_node_requests_total", "@generator", "code"), "{{code}}").or(noKubelets)},
					tells:   "By answer. 403 and 404 at the start are what real kubelets get too.",
					do:      "429: node-high is full. Names instead of numbers are answers that never came.",
				}, {
					title: "Pods evicted", unit: "ops", warn: 1, moves: []string{"nodeFailure"},
					queries: []query{q(rate("taint_eviction_controller_pod_deletions_total", "@kcm"), "pods")},
					tells:   "From lost nodes, after their tolerations (300 s by default).",
					do:      "leave --node-eviction-rate low until write latency is inside its objective.",
				},
			}},
			{"Pods", []panel{
				{
					title: "Pods", unit: "short", moves: []string{"nodeFailure"}, queries: []query{
						q(`sum(stormglass_workload_pods_wanted{@generator})`, "wanted"),
						q(`sum(stormglass_workload_pods_ready{@generator})`, "ready"),
						q(`sum(stormglass_workload_pods_pending{@generator})`, "not Ready yet"),
						q(`sum(stormglass_workload_pods_unscheduled{@generator})`, "without a node"),
						q(`sum(stormglass_workload_pods_terminating{@generator})`, "being deleted"),
						q(`sum(stormglass_node_pods_running{@generator})`, "running on nodes").or(noKubelets),
					},
					w: 12, h: 9,
					tells: "Ready against wanted is what users of the cluster feel. The gap between them moves from hop to hop: without a node, not Ready yet.",
					do:    "without a node: scheduler. Not Ready yet: kubelets and the API server. Neither, and fewer than wanted: controller manager.",
				}, {
					title: "Pod startup", unit: "s", log: true, warn: 5, w: 12, h: 9, queries: []query{
						q(quantile(0.5, "stormglass_pod_startup_seconds", "@generator"), "p50").or(noStart),
						q(quantile(0.95, "stormglass_pod_startup_seconds", "@generator"), "p95").or(noStart),
						q(p99("stormglass_pod_startup_seconds", "@generator"), "p99").or(noStart),
					},
					tells: "From a pod's first event until it is Ready. The objective is a p99 of 5 s, images not counted.",
					do:    "see which hop it is: scheduling, binding, or the kubelets' writes.",
				}, {
					title: "The last rollout, hop by hop", kind: "table", unit: "s", w: 24,
					hidden: []string{"Time"}, renamed: map[string]string{"Value": "after the change"},
					queries: []query{{expr: `max by (deployment, hop, piece) (stormglass_workload_rollout_hop_seconds{@generator})`, empty: &noRollout}},
					tells:   "When the first and the last piece of a change arrived at each hop, counted from the change of the Deployment.",
					do:      "the largest gap between two hops is the bottleneck of rollouts.",
				},
			}},
		},
	}
}
