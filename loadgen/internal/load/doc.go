// Package load is what loads have in common: the target they are sent to,
// the phases their figures are kept apart by, how a request may end. The loads
// are in its rooms: request offers requests in an open loop, watch holds
// watches and measures deliveries, object has what both work on.
//
// Load is offered and measured from the client's side, honestly. Arrivals come
// when the schedule of package pace says, whatever became of those before.
// Latency counts from the intended start to the last byte of the answer, so
// neither a server that stalls nor a generator that is late can hide; lag,
// connect and service time tell them apart. What could not be sent is counted.
// Nothing is sent twice, and there is no rate limiter.
//
// Metrics, when a target has a registerer. Request metrics are labelled load,
// verb and resource, the others load.
//
//	stormglass_requests_total               counter, by code too: HTTP status or kind of failure
//	stormglass_requests_unsent_total        counter: arrivals without a free slot
//	stormglass_request_seconds              histogram: intended start to last byte
//	stormglass_request_lag_seconds          histogram: intended start until it was taken up
//	stormglass_watches_open                 gauge: established watches
//	stormglass_watch_events_total           counter: all events read
//	stormglass_watch_bytes_total            counter: bytes of events read
//	stormglass_watch_delivered_total        counter: first deliveries of measured writes
//	stormglass_watch_lost_total             counter: deliveries given up
//	stormglass_watch_duplicated_total       counter
//	stormglass_watch_reordered_total        counter
//	stormglass_watch_reconnects_total       counter: resumed by resourceVersion
//	stormglass_watch_relists_total          counter: listed again after a 410
//	stormglass_watch_delivery_seconds       histogram: acknowledgement to delivery; 0 if the event came first
package load
