// Package load has what loads have in common: the interface by which a run drives
// them, the target they are sent to, the phases their figures are kept apart by, how
// a request may end. Package request offers requests in an open loop, watch holds
// watches and measures deliveries, history keeps every operation, object has the
// objects that loads work on. Package kind makes a scenario's loads of them.
//
// To add a kind of load, describe it in a file load_KIND.go of package scenario, add
// it to the table there (load_kinds.go) and to the makers of package kind, and name
// it at scenario.Load.Kind, which the reference is made from.
//
// Load is offered and measured from the client's side, honestly. Arrivals come
// when the schedule of package arrival says, whatever became of those before.
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
