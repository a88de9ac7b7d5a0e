// Package workers divides the loads and the simulated nodes of one run among several generators. The coordinator,
// package run, does everything else: it handles the run directory, objects, credentials, scrapes and actions, and
// chooses the nodes for faults. It also runs the loads that cannot be divided (kind.Divides) and the nodes whose kubelet
// API the scenario needs (WholeNodes).
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
// Each worker has one TLS 1.3 connection to the coordinator. A CA that is created for the run signs the coordinator's
// certificate; the worker sends a token. Messages are JSON, each preceded by its length in four bytes. Nothing is sent
// twice: if a connection breaks, the worker is lost, and the run ends and cannot be judged. A restarted worker is
// refused.
//
// # Time
//
// Clocks are compared before every phase in 16 exchanges. The fastest exchange counts; the measured offset may be wrong
// by half of its duration. Loads begin at a future time that the coordinator sends to all workers. A worker that
// receives it too late ends the run. The latency of a delivery that is measured from another worker's acknowledgement
// has the uncertainty of both workers' clocks added.
//
// # Merging
//
// Workers send distributions as counts of histograms, never as quantiles. Slots are added where the slots of all workers
// end together. Counters and histograms of metrics are added.
package workers
