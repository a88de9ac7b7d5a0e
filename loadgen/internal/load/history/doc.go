// Package history is a load that keeps its history: clients that write and
// read a few registers through faults, and watchers of them, with the time of
// each call, answer and event on one clock. When all is over the history is
// judged by package check: is any acknowledged write lost, did a read go
// backwards, did a watch miss, double or reorder an event.
//
// A register is a ConfigMap with one value, written by updates that name the
// resourceVersion they replace, each with a value of its own. A client is a
// process in Jepsen's terms: sequential, on a connection of its own, without
// retries. Operations have these outcomes:
//
//   - 2xx: executed. A read's 404 is an answer: there is no such object.
//   - 409 and 404 of a write: not executed, for what the register was.
//   - any other 4xx but 408, and a connection that could not be made: not
//     executed.
//   - everything else (5xx, timeouts, lost connections, answers that cannot be
//     read): unknown. The write may have happened, or may happen yet, and its
//     client goes on with another connection.
//
// A load's life: Prepare, Run, then, when the faults are over, Finish, which
// reads the final state, waits for the watchers, and judges. Results are then
// those of the whole run, not by phase: what is wrong with a history is often
// found in another phase than it was caused in.
package history
