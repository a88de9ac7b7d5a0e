// Package history records all operations of clients that write and read a few registers during faults, and all events
// of watchers of the registers. All times are measured with one clock. At the end, package check searches the history
// for lost acknowledged writes, reads that went backwards, and watch events that are missing, repeated or out of order.
//
// A register is a ConfigMap with one value. Each update writes a unique value and names the resourceVersion that it
// replaces. A client (a "process" in Jepsen) performs one operation at a time, on its own connection, without retries.
// The response determines the outcome of an operation:
//
//   - 2xx: executed. For a read, a 404 also means executed.
//   - 409 or 404 in answer to a write: not executed, because of the register's
//     state.
//   - any other 4xx except 408, or a failed connection attempt: not executed.
//   - everything else (5xx, timeouts, lost connections, unreadable responses): unknown. The write may have happened, or
//     may still happen, and its client continues with another connection.
//
// A run calls Prepare, Run and, when all faults have ended, Finish. Finish reads the final state, waits for the
// watchers, and judges the history. The whole run has one result, because a violation often becomes visible in a later
// phase than its cause.
package history
