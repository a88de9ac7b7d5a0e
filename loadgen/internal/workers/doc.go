// Package workers divides the loads and the simulated nodes of one run among several generator processes, the workers.
// The coordinator (package run) does everything else: it manages the run directory, objects, credentials, scrapes and
// actions, and chooses the nodes that faults affect. It also runs the loads that workers cannot divide (kind.Divides),
// and all nodes if the scenario needs their kubelet API (WholeNodes).
//
// # Flow of data
//
//	coordinator -> worker: scenario, target, and which share of the load to generate
//	coordinator -> worker: commands to prepare, run and stop a load, and to wait for its watches' deliveries
//	worker -> coordinator: samples per 100 ms, acknowledged writes, metrics, histograms; the coordinator merges them
//	worker -> coordinator: request for a node's credentials, which the coordinator or the API server signs
//	coordinator -> workers: which nodes can a fault affect? With the scenario's seed, the coordinator chooses some of them
//	coordinator -> worker: begin the fault on these of your nodes
//
// # Connection
//
// Each worker has one TLS 1.3 connection to the coordinator. For each run, the coordinator creates a CA and its own
// certificate. The worker authenticates with a token. Messages are JSON, each preceded by its length in four bytes. If
// a connection breaks, no message is sent again: the worker is lost, and the run ends without a verdict. A worker that
// is restarted cannot join again.
//
// # Time
//
// Before every phase, the coordinator compares its clock with each worker's clock in 16 exchanges. It uses the offset
// from the fastest exchange, whose error is at most half of the exchange's duration. To start a load, the coordinator
// sends all workers a future time. If a worker receives this time too late, the run ends. If one worker's watch
// delivers another worker's write, the measured latency includes the uncertainty of both clocks.
//
// # Merging
//
// Workers send distributions as histogram counts, because quantiles cannot be merged. The coordinator adds the samples
// that the workers recorded for the same 100 ms. It also adds counters and histograms of metrics.
package workers
