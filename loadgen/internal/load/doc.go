// Package load defines what all loads share: the interface that a run uses to drive them, their target, results by phase, and
// request outcomes. Package request sends requests in an open loop, watch holds watches and measures deliveries, history records
// every operation, and object provides the objects that loads work on. Package kind builds a scenario's loads from them.
//
// To add a kind of load, describe it in a file load_KIND.go of package scenario, add it to the table there (load_kinds.go) and to
// the makers of package kind, and name it at scenario.Load.Kind, from which the reference is generated.
//
// Load is offered and measured from the client's side. Arrivals follow the schedule of package arrival, regardless of earlier
// outcomes. Latency counts from the intended start to the last byte of the answer, so neither a stalled server nor a late
// generator can hide; lag, connect and service time distinguish the two. Requests that could not be sent are counted. Nothing
// is sent twice, and there is no rate limiter.
package load
