// Package history records every operation of clients that write and read a few registers during faults, and every event of the
// registers' watchers. All times are on one clock. At the end package check looks for lost acknowledged writes, reads that went
// backwards, and watch events that are missing, repeated or out of order.
//
// A register is a ConfigMap with one value. Each update writes a unique value and names the resourceVersion that it replaces. A
// client is a process in Jepsen's terms: sequential, on its own connection, without retries. Operations have these outcomes:
//
//   - 2xx: executed. A read's 404 is an answer: there is no such object.
//   - 409 and 404 of a write: not executed, because of the register's state.
//   - any other 4xx except 408, and a connection that could not be established:
//     not executed.
//   - everything else (5xx, timeouts, lost connections, answers that cannot be
//     read): unknown. The write may have happened, or may still happen, and its
//     client continues with another connection.
//
// The methods of a load are called in this order: Prepare, Run and, when all faults have ended, Finish. Finish reads the final
// state, waits for the watchers, and judges the history. The results cover the whole run, not each phase, because a violation
// often shows in a later phase than its cause.
package history
