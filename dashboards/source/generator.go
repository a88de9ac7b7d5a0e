package source

// generator: what was offered, what came of it, and whether the generator can be believed.
func generator() board {
	return board{
		uid: "stormglass-loadgen", title: "Stormglass / Load generator", jobs: jobGenerator,
		tells: "Offered against achieved, latency from the intended start, watch delivery; and the generator's own cost and fitness, without which none of it counts.",
		rows: []row{
			{"Can it be believed", []panel{
				{
					title: "Scheduling lag p99", unit: "s", log: true, warn: 0.064, bad: 0.128,
					queries: []query{q(p99("stormglass_scheduling_lag_seconds", "@generator"), "p99")},
					tells:   "How late a 10 ms ticker of the generator fires. If it rises with the latencies below, suspect the generator, not the cluster.",
					do:      "give it a machine or cores of its own, or ask for less. GeneratorSaturated voids the run.",
				}, {
					title: "Requests sent late, p99", unit: "s", log: true, warn: 0.128,
					queries: []query{q(p99("stormglass_request_lag_seconds", "@generator", "load"), "{{load}}").or(noRequests)},
					tells:   "From the intended start to the sending. It is part of each latency.",
					do:      "late with a sound scheduling lag: more connections. Late with a bad one: CPU.",
				}, {
					title: "Not sent", unit: "reqps", bad: 0.001, moves: []string{"webhook slow"},
					queries: []query{q(rate("stormglass_requests_unsent_total", "@generator", "load"), "{{load}}").or(noRequests)},
					tells:   "Arrivals that found maxInFlight requests open already. The latency of what was sent flatters the server then.",
					do:      "read the run as overload. Raise maxInFlight only to find out how deep it gets.",
				},
			}},
			{"Requests", []panel{
				{
					title: "Offered and achieved", unit: "reqps", moves: []string{"kill kube-apiserver", "etcdQuota"}, queries: []query{
						q(`sum(rate(stormglass_requests_total{@generator}[@rate])) + sum(rate(stormglass_requests_unsent_total{@generator}[@rate]))`, "offered").or(noRequests),
						q(rate("stormglass_requests_total", `@generator, code=~"2.."`), "achieved").or(noRequests),
					},
					tells: "Achieved counts answers of 2xx when they come. Below offered: a stall or failures. Above: answers that a stall held back.",
					do:    "a gap that stays: the control plane's limit was found. See Work that stands in the overview.",
				}, {
					title: "Latency from the intended start", unit: "s", log: true, warn: 1, moves: []string{"slowFsync", "networkDelay", "pause etcd", "kill etcd", "webhook slow", "partition"},
					queries: []query{
						q(quantile(0.5, "stormglass_request_seconds", "@generator", "load"), "{{load}} p50").or(noRequests),
						q(quantile(0.95, "stormglass_request_seconds", "@generator", "load"), "{{load}} p95").or(noRequests),
						q(p99("stormglass_request_seconds", "@generator", "load"), "{{load}} p99").or(noRequests),
					},
					tells: "What a user waits. An open loop does not slow down when the server does, so a stall shows here and not as a lower rate.",
					do:    "slower than the server's own p99 says: time before the handler: queues, connections, the network.",
				}, {
					title: "Answers that were not 2xx", unit: "reqps", moves: []string{"kill etcd", "etcdQuota", "webhook closed", "partition"},
					queries: []query{q(rate("stormglass_requests_total", `@generator, code!~"2.."`, "code"), "{{code}}").or(noLosses)},
					tells:   "By HTTP status, or by the kind of failure where there was no answer.",
					do:      "429: priority and fairness. Timeouts and broken connections: a component that is away.",
				},
			}},
			{"Watches", []panel{
				{
					title: "Watches open", unit: "short", moves: []string{"watches"},
					queries: []query{q(`sum by (load) (stormglass_watches_open{@generator})`, "{{load}}").or(noWatches)},
					tells:   "Established ones. A dip is a mass reconnect.",
					do:      "a dip without a fault: see restarts of API servers.",
				}, {
					title: "Events", unit: "ops", moves: []string{"changes"}, queries: []query{
						q(rate("stormglass_watch_events_total", "@generator"), "read").or(noWatches),
						q(rate("stormglass_watch_delivered_total", "@generator"), "first deliveries of measured writes").or(noWatches),
					},
					tells: "Read counts bookmarks and what others wrote too.",
					do:    "delivered below writes times watches: watches that lag behind.",
				}, {
					title: "Delivery, from a write's acknowledgement", unit: "s", log: true, warn: 1, queries: []query{
						q(quantile(0.5, "stormglass_watch_delivery_seconds", "@generator", "load"), "{{load}} p50").or(noDelivery),
						q(quantile(0.95, "stormglass_watch_delivery_seconds", "@generator", "load"), "{{load}} p95").or(noDelivery),
						q(p99("stormglass_watch_delivery_seconds", "@generator", "load"), "{{load}} p99").or(noDelivery),
						q(quantile(0.999, "stormglass_watch_delivery_seconds", "@generator", "load"), "{{load}} p99.9").or(noDelivery),
					},
					tells: "How old every informer's view of the cluster was. Upstream has no objective for it.",
					do:    "slow: the API server's CPU, or a fan-out that is too wide.",
				}, {
					title: "Lost, twice, out of order", unit: "cps", bad: 0.001, queries: []query{
						q(rate("stormglass_watch_lost_total", "@generator"), "lost").or(noWatches),
						q(rate("stormglass_watch_duplicated_total", "@generator"), "twice").or(noWatches),
						q(rate("stormglass_watch_reordered_total", "@generator"), "out of order").or(noWatches),
					},
					tells: "None of these may happen, under any fault.",
					do:    "anything but zero is a bug, of the control plane or of the generator: keep the run's directory.",
				}, {
					title: "Reconnected and listed again", unit: "cps", moves: []string{"restart kube-apiserver", "kill kube-apiserver"}, queries: []query{
						q(rate("stormglass_watch_reconnects_total", "@generator"), "reconnected").or(noWatches),
						q(rate("stormglass_watch_relists_total", "@generator"), "listed again").or(noWatches),
					},
					tells: "A watch that ends resumes where it was; after 410 it has to list.",
					do:    "lists after each reconnect: the watch cache is too small for the length of the gap.",
				}, {
					title: "Bytes of events", unit: "Bps", moves: []string{"changes"}, queries: []query{q(rate("stormglass_watch_bytes_total", "@generator", "load"), "{{load}}").or(noWatches)},
					tells: "What the watches read.",
					do:    "near the network's limit: smaller objects, fewer watches.",
				},
			}},
			{"Its own cost", []panel{
				{
					title: "CPU", unit: "short", w: 6, queries: []query{q(rate("process_cpu_seconds_total", "@generator"), "cores")},
					tells: "Cores in use. On one machine they are taken from the control plane.",
					do:    "over a quarter of the machine: use a machine of its own for numbers that others will read.",
				}, {
					title: "Memory", unit: "bytes", w: 6, queries: []query{
						q(`sum(process_resident_memory_bytes{@generator})`, "resident"), q(`sum(go_memstats_heap_inuse_bytes{@generator})`, "heap in use"),
					},
					tells: "Bounded: nothing grows with the number of requests.",
					do:    "a climb that goes on is a bug: keep the run's directory.",
				}, {
					title: "Goroutines and descriptors", unit: "short", w: 6, queries: []query{
						q(`sum(go_goroutines{@generator})`, "goroutines"), q(`sum(process_open_fds{@generator})`, "descriptors"),
					},
					tells: "One goroutine for each node and for each connection, none for a watch or a request.",
					do:    "near the limit of descriptors: ulimit -n.",
				}, {
					title: "Scrapes took", unit: "s", w: 6, log: true, queries: []query{q(`max by (instance) (scrape_duration_seconds{`+`cluster=~"$cluster"})`, "{{instance}}")},
					tells: "Fetching and storing each component's metrics. A scrape that is as slow as its interval loses data.",
					do:    "raise record.interval, or drop families (record.drop).",
				},
			}},
		},
	}
}
