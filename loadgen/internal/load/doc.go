// Package load defines the common parts of all kinds of load: the interface Load, the target, the results by phase, and
// the outcomes of requests. Package request sends requests in an open loop. Package watch keeps watches open and
// measures deliveries. Package history records every operation. Package object provides the objects that loads read and
// write. Package kind builds the loads of a scenario.
//
// To add a kind of load: describe its fields in a file load_KIND.go of package scenario; add the kind to the table in
// load_kinds.go and to the function makers of package kind; and name the kind in the comment of scenario.Load.Kind,
// which the reference copies.
//
// All loads are open loops, measured by the client. Arrivals follow the schedule of package arrival, independently of
// earlier requests. Latency is the time from the intended start of a request to the last byte of the response. It
// includes delays by a stalled server and by a late generator; lag, connect time and service time show what caused a
// delay. Loads count requests that they could not send. They send no request twice, and have no rate limiter.
package load
