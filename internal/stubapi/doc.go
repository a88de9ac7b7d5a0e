// Package stubapi is an API server whose behaviour is known exactly, to hold
// the load engine's numbers against: HTTP/2 over TLS, objects with resource
// versions, watches that resume, and for each request and each watch event
// whatever the test's policy says becomes of it. It keeps the true record: when
// each request was received and answered, what each watch was sent.
//
// It is cheap enough that a client can be driven to its own limit: one
// goroutine reads a connection and answers out of memory, another writes all
// that has gathered in one piece. It serves over TCP, in the process of a test
// or in one of its own (see Child), and over pipes in memory (see Pipes), on
// which a test in a synctest bubble has virtual time: latencies are then what
// the policy says to the nanosecond, on a machine under any load.
//
// It is no API server: no authentication, no validation, no admission, no
// defaults. Lists are of the present state whatever version they ask for.
// Memory grows with the recorded requests and events; a run is short.
package stubapi
