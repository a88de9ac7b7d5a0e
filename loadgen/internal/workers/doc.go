// Package workers divides the loads and the simulated nodes of one run among several generator processes, the workers.
// The coordinator (package run) does everything else: it manages the run directory, objects, credentials, scrapes and
// actions, and chooses the nodes that faults affect. It also runs the loads that cannot be divided (kind.Divides), and
// all nodes if the scenario needs their kubelet API (WholeNodes).
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
// Each worker has one TLS 1.3 connection with the coordinator. The coordinator's certificate is signed by a CA that is
// created for the run. The worker authenticates with a token. Messages are JSON, each preceded by its length in four
// bytes. No message is sent twice: if a connection breaks, the worker is lost, and the run ends without a verdict. A
// worker that is restarted cannot join again.
//
// # Time
//
// Before every phase, the clocks are compared in 16 exchanges. The offset of the fastest exchange is used; its error is
// at most half of the duration of the exchange. Loads begin at a future time, which the coordinator sends to all
// workers. If a worker receives this time too late, the run ends. The latency of a delivery of another worker's write
// includes the uncertainty of both workers' clocks.
//
// # Merging
//
// Workers send distributions as counts of histograms, never as quantiles. Slots of recorded samples are added when the
// workers' slots end at the same time. Counters and histograms of metrics are added.
package workers
