// Package stubapi is a stub of an API server with exactly known behaviour. Tests use it to check what the load engine
// measures. It serves HTTP/2 over TLS, with objects, resource versions and watches that can resume. A test determines
// the outcome of each request with a Policy, and of each watch event with a Script. The stub records the times of each
// request and response, and the events that it sends to each watch.
//
// The stub uses little CPU, so tests can find a client's limit. For each connection, one goroutine reads requests and
// executes them in memory, and another writes all pending responses together. The stub serves over TCP, or over pipes
// in memory (Pipes). In a synctest bubble, time is virtual, and latencies over pipes match the policy exactly.
//
// The stub has no authentication, validation, admission or defaults. Lists always return the current state. Memory
// grows with the recorded requests and events.
package stubapi
