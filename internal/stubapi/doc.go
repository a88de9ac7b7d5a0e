// Package stubapi is an API server of exactly known behaviour, for tests of the load
// engine's numbers: HTTP/2 over TLS, objects with resource versions, watches that resume,
// and for each request and event the outcome that the test's policy decides. It records
// when each request was received and answered, and what each watch was sent.
//
// It drives a client to its limit cheaply: one goroutine reads a connection and answers
// from memory, another writes all that has gathered at once. It serves over TCP, in the
// test's process or its own (Child), and over pipes in memory (Pipes), on which time in a
// synctest bubble is virtual: latencies are the policy's to the nanosecond.
//
// It has no authentication, validation, admission or defaults. Lists are of the present
// state. Memory grows with the recorded requests and events.
package stubapi
