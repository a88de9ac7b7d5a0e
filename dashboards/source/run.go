package source

// run: what was done when, and what moved with it. The marks of phases and
// faults are annotations on every dashboard; here they are rows as well.
func run() board {
	return board{
		uid: "stormglass-run", title: "Stormglass / Run", jobs: jobAll,
		tells: "One run on one screen: phases and faults, and below them, on the same axis, what they did to users and to the control plane.",
		rows: []row{
			{"What was done", []panel{
				{
					title: "Phases", kind: "state-timeline", unit: "bool_on_off", w: 24, h: 5,
					queries: []query{q(`max by (phase) (stormglass_phase_active{@generator})`, "{{phase}}").or(noMarks)},
					tells:   "The phases of the scenario. Every number of a report is of one of these.",
					do:      "compare a phase with the one before it, not with the whole run.",
				}, {
					title: "Faults in force", kind: "state-timeline", unit: "bool_on_off", w: 24, h: 5, bad: 1,
					queries: []query{q(`max by (fault, on) (stormglass_fault_active{@generator})`, "{{fault}} {{on}}").or(noFaults)},
					tells:   "What was broken on purpose, on which component, from begin to end. What comes back at once has no length: its begin is an annotation.",
					do:      "what moves here without a fault above it was not the harness.",
				}, {
					title: "Components that answer", kind: "state-timeline", unit: "bool_on_off", w: 24, h: 6, warn: 0.5, falls: true, moves: []string{"kill", "restart"},
					queries: []query{q(`min by (instance) (up{@all})`, "{{instance}}")},
					tells:   "Whether each scrape succeeded.",
					do:      "off without a fault: the run may not pass; see the component's log in the run's directory.",
				},
			}},
			{"What users felt", []panel{
				{
					title: "Offered and achieved", unit: "reqps", moves: []string{"kill kube-apiserver", "etcdQuota"}, more: "stormglass-loadgen", queries: []query{
						q(`sum(rate(stormglass_requests_total{@generator}[@rate])) + sum(rate(stormglass_requests_unsent_total{@generator}[@rate]))`, "offered").or(noRequests),
						q(rate("stormglass_requests_total", `@generator, code=~"2.."`), "achieved").or(noRequests),
					},
					tells: "Achieved counts answers of 2xx. The gap is what users did not get.",
					do:    "the time from a fault's end until the lines meet is the recovery.",
				}, {
					title: "Latency p99 from the intended start", unit: "s", log: true, warn: 1, more: "stormglass-loadgen", moves: []string{"slowFsync", "networkDelay", "pause etcd", "kill etcd", "webhook slow", "partition"},
					queries: []query{q(p99("stormglass_request_seconds", "@generator", "load"), "{{load}}").or(noRequests)},
					tells:   "By load. What a user waits, our own delay included.",
					do:      "back inside 1 s: the end of the disturbance.",
				}, {
					title: "Watch delivery p99", unit: "s", log: true, warn: 1, more: "stormglass-loadgen",
					queries: []query{q(p99("stormglass_watch_delivery_seconds", "@generator", "load"), "{{load}}").or(noDelivery)},
					tells:   "How old the informers' view was.",
					do:      "slow after a restart: everybody lists again.",
				}, {
					title: "Nodes and pods that are Ready", unit: "percentunit", max: 1, moves: []string{"nodeFailure"}, more: "stormglass-nodes", queries: []query{
						q(`sum(stormglass_workload_nodes_ready{@generator}) / (max_over_time(sum(stormglass_workload_nodes_ready{@generator})[$__range:$__interval]) > 0)`, "nodes").or(noKubelets),
						q(`sum(stormglass_workload_pods_ready{@generator}) / (sum(stormglass_workload_pods_wanted{@generator}) > 0)`, "pods").or(noWanted),
					},
					tells: "The workload's side of it: of the simulated nodes, the most that there were so far are 100%; of the pods, those that are wanted.",
					do:    "the slope after a failure is the speed of recovery: see what limits it in the overview.",
				}, {
					title: "Requests by verb", unit: "reqps", more: "stormglass-apiserver", queries: []query{q(rate("apiserver_request_total", "@api", "verb"), "{{verb}}")},
					tells: "What the control plane was asked to do, by everybody.",
					do:    "a wave of LISTs after a fault is the relist storm.",
				}, {
					title: "Refused and failed answers", unit: "reqps", moves: []string{"kill etcd", "kill kube-apiserver", "etcdQuota", "webhook closed", "partition kube-apiserver"}, more: "stormglass-apiserver",
					queries: []query{q(rate("apiserver_request_total", `@api, code=~"4..|5.."`, "code"), "{{code}}").or(noRefusal)},
					tells:   "At the server. What never got there is in the generator's dashboard.",
					do:      "429: queues. 5xx: behind the API server.",
				},
			}},
			{"What it did to the control plane", []panel{
				{
					title: "WAL fsync, p99 and median", unit: "s", log: true, warn: 0.010, moves: []string{"slowFsync", "diskContention"}, more: "stormglass-etcd",
					queries: walFsync(),
					tells:   "The first to move when it is the disk.",
					do:      "see etcd's dashboard.",
				}, {
					title: "Request p99 by verb, at the server", unit: "s", log: true, warn: 1, more: "stormglass-apiserver", moves: []string{"slowFsync", "networkDelay", "pause etcd", "kill etcd", "partition"},
					queries: []query{q(p99("apiserver_request_duration_seconds", short, "verb"), "{{verb}}")},
					tells:   "Second to move when it is the disk, first when it is the API server.",
					do:      "see the API server's dashboard.",
				}, {
					title: "Scheduling attempt p99", unit: "s", log: true, warn: 0.5, more: "stormglass-scheduler",
					queries: []query{q(p99("scheduler_scheduling_attempt_duration_seconds", "@scheduler", "result"), "{{result}}").or(noPods)},
					tells:   "Moves with constraints and nodes, and with binding when writes are slow.",
					do:      "see the scheduler's dashboard.",
				}, {
					title: "Leader changes seen", unit: "short", more: "stormglass-etcd", moves: []string{"pause etcd", "partition etcd"},
					queries: []query{q(`max by (instance) (etcd_server_leader_changes_seen_total{@etcd})`, "{{instance}}")},
					tells:   "Each step is an election. Lines begin anew where a member does.",
					do:      "a step without a fault: see round trips and fsync.",
				}, {
					title: "Controllers' queues", unit: "short", more: "stormglass-controller-manager",
					queries: []query{q(`topk(6, max by (name) (workqueue_depth{@kcm}))`, "{{name}}")},
					tells:   "The six deepest. What is asked for and not done yet.",
					do:      "see the controller manager's dashboard.",
				}, {
					title: "CPU by component", unit: "short", stacked: true, queries: []query{q(rate("process_cpu_seconds_total", "@all", "job"), "{{job}}")},
					tells: "Cores. At what the machine has, latencies are the machine's.",
					do:    "repeat with fewer nodes or a lower rate, and compare.",
				},
			}},
		},
	}
}
