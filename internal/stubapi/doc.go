// Package stubapi is a stub of an API server with exactly known behaviour, for tests of the figures that the load engine
// measures. It serves HTTP/2 over TLS, with objects, resource versions and watches that can resume. A test determines the
// outcome of each request by a Policy, and of each watch event by a Script. The stub records when each request was received and
// answered, and which events were sent to each watch.
//
// The stub needs little CPU to drive a client to its limit: one goroutine reads a connection and answers from memory, and
// another writes all pending answers at once. It serves over TCP, in the process of the test or in a separate one (Child), and
// over pipes in memory (Pipes). In a synctest bubble time is virtual, so that latencies over pipes match the policy exactly.
//
// The stub has no authentication, validation, admission or defaults. Lists always return the current state. Memory grows with
// the recorded requests and events.
package stubapi
