// Package stubapi is a stub of an API server with exactly known behaviour, for tests of the measurements of the load engine. It
// serves HTTP/2 over TLS, with objects, resource versions and watches that can resume. A test determines the
// outcome of each request by a Policy, and of each watch event by a Script. The stub records when each request was received and
// answered, and which events were sent to each watch.
//
// The stub uses little CPU, so it can load a client to the client's limit: for each connection, one goroutine reads
// requests and answers them from memory, and another writes all pending responses together. The stub serves TCP or
// pipes in memory (Pipes). In a synctest bubble time is virtual, so latencies over pipes match the policy exactly.
//
// The stub has no authentication, validation, admission or defaults. Lists always return the current state. Memory grows with
// the recorded requests and events.
package stubapi
