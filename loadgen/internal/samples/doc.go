// Package samples keeps what each load did ten times a second: requests that
// succeeded, failed and how, the slowest of them; of watches what broke, had to
// list again and was delivered. From it package recovery tells how long a fault
// was felt, which the totals of a phase cannot.
//
// A load asks the Recorder for its Requests or Streams once, and tells them what
// happens: a request costs an atomic addition and a maximum, a failed one
// takes a lock. One goroutine hands the slots on to pulse.jsonl, a line for each
// in which something happened, so that the file grows with time and not with
// the load: about 1 MB per load and hour of a busy run.
//
// A slot is as long as its line says: Width, unless the machine ran the
// recorder late. What happened is in the slot in which it ended.
package samples
