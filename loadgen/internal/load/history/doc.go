// Package history records every operation of clients that write and read a few
// registers through faults, and every event of their watchers, with the times of
// calls, answers and events on one clock. At the end package check looks for lost
// acknowledged writes, reads that went backwards, and watch events that are
// missing, repeated or out of order.
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
// those of the whole run, not by phase: a violation often shows in a later phase
// than its cause.
package history
