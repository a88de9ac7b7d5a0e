// Package traffic offers load to an API server and measures what comes back,
// from the client's side and honestly: Requests (one verb on one resource),
// Watches (held open and timed per event), and Changes (measured writes that
// each watch must deliver).
//
// Requests are an open loop: arrivals come when the schedule of package pace
// says, whatever became of those before. Latency counts from the intended
// start to the last byte of the answer, so neither a server that stalls nor a
// generator that is late can hide; the service time from the actual send and
// the lag between the two tell them apart. What could not be sent is counted.
// Nothing is sent twice (see pool for how net/http would), and there is no
// rate limiter.
//
// Watch deliveries are timed from the write's acknowledgement, and the ledger
// counts for each write and each watch whether it came, came twice, or came
// late in the order (see ledger for what must be delivered exactly).
//
// A watch is read by a goroutine of its own through net/http. What it reads is
// pushed into a scanner that needs no reader and keeps no object, so that a
// loop over the frames of a whole connection can take its place.
//
// Metrics, when a target has a registerer. Request metrics are labelled load,
// verb and resource, the others load.
//
//	stormglass_requests_total               counter, by code too: HTTP status or kind of failure
//	stormglass_requests_unsent_total        counter: arrivals without a free slot
//	stormglass_request_seconds              histogram: intended start to last byte
//	stormglass_scheduling_lag_seconds       histogram: intended start to send
//	stormglass_watches_open                 gauge: established watches
//	stormglass_watch_events_total           counter: all events read
//	stormglass_watch_delivered_total        counter: first deliveries of measured writes
//	stormglass_watch_lost_total             counter: deliveries given up
//	stormglass_watch_duplicated_total       counter
//	stormglass_watch_reordered_total        counter
//	stormglass_watch_reconnects_total       counter: resumed by resourceVersion
//	stormglass_watch_relists_total          counter: listed again after a 410
//	stormglass_watch_delivery_seconds       histogram: acknowledgement to delivery; 0 if the event came first
package traffic
