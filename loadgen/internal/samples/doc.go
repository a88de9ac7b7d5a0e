// Package samples counts what each load did ten times a second: requests that succeeded
// or failed, the slowest of them; watches that broke or had to list again, deliveries.
// Package recovery computes from it for how long a fault affected a load.
//
// A load asks the Recorder for its Requests or Streams once and counts there: a request
// costs an atomic addition and a maximum, a failed one a lock. One goroutine writes a line
// of pulse.jsonl for each slot in which something ended: about 1 MB per load and hour of
// a busy run. A slot has length Width, unless the machine ran the recorder late.
package samples
