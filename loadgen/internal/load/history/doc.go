// Package history records every operation of clients that write and read a few
// registers through faults, and every event of their watchers, with the times of
// calls, answers and events on one clock. At the end package check looks for lost
// acknowledged writes, reads that went backwards, and watch events that are
// missing, repeated or out of order.
//
// A register is a ConfigMap with one value. Updates write it and name the
// resourceVersion that they replace, each with a unique value. A client is a
// process in Jepsen's terms: sequential, on its own connection, without
// retries. Operations have these outcomes:
//
//   - 2xx: executed. A read's 404 is an answer: there is no such object.
//   - 409 and 404 of a write: not executed, for what the register was.
//   - any other 4xx but 408, and a connection that could not be made: not
//     executed.
//   - everything else (5xx, timeouts, lost connections, answers that cannot be
//     read): unknown. The write may have happened, or may still happen, and its
//     client continues with another connection.
//
// A load's life: Prepare, Run, then, when the faults are over, Finish, which
// reads the final state, waits for the watchers, and judges. The results cover
// the whole run, not each phase, because a violation often shows in a later
// phase than its cause.
package history
