// Package load defines what all loads share: the interface by which a run drives
// them, their target, results by phase, and the outcomes of a request. Package request offers requests in an open loop, watch holds
// watches and measures deliveries, history keeps every operation, object has the
// objects that loads work on. Package kind makes a scenario's loads of them.
//
// To add a kind of load, describe it in a file load_KIND.go of package scenario, add
// it to the table there (load_kinds.go) and to the makers of package kind, and name
// it at scenario.Load.Kind, which the reference is made from.
//
// Load is offered and measured from the client's side. Arrivals follow the
// schedule of package arrival, whatever the outcome of earlier ones. Latency counts from the intended start to the last byte of the answer, so
// neither a server that stalls nor a generator that is late can hide; lag,
// connect and service time tell them apart. What could not be sent is counted.
// Nothing is sent twice, and there is no rate limiter.
package load
