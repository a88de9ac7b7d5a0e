// Package workers divides the loads and the simulated nodes of one run among several generators. The coordinator, package
// run, keeps all else: the run directory, objects, identities, scrapes, actions, the choice of faults, the loads that cannot
// be divided (kind.Divides), and nodes whose kubelet API the scenario needs (WholeNodes).
//
// # Flow of data
//
//	coordinator: scenario, target, share k of N -> worker: kind.Make of the share; prepare, run at a time, stop, settle, finish
//	worker: slots of 100 ms, acknowledged writes, metrics, counts of histograms -> coordinator: merged, as one generator's
//	worker: asks for a node's credentials -> coordinator: signs, or has the API server sign
//	coordinator: asks all which nodes a fault may hit, draws by the seed -> worker: hits its own
//
// # Connection
//
// Each worker holds one TLS 1.3 connection to the coordinator. An authority made for the run signs the coordinator's
// certificate; the worker shows a token. Messages are JSON, each after its length in four bytes. Nothing is sent twice:
// when a connection breaks, the worker is lost, and the run ends and cannot be judged. A restarted worker is refused.
//
// # Time
//
// Clocks are compared before every phase in 16 exchanges. The fastest exchange counts, and the comparison may be wrong
// by half of its duration. Loads begin at a future time that the coordinator sends to all workers; a worker that learns
// it too late is late, and ends the run. Latencies of deliveries from another worker's acknowledgement have both
// workers' uncertainty added.
//
// # Merging
//
// Distributions come as counts of histograms, never as quantiles; slots are added where they end together; counters and
// histograms of metrics are added.
package workers
