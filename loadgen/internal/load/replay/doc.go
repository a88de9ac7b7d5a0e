// Package replay sends the requests of a recorded trace again, each at its time. Each client of the trace becomes a separate
// user. The objects that the requests need are created beforehand.
//
// The schedule, the objects to create and the measures of fidelity are pure functions of the trace, the options and the
// requests sent. Requests go through the open-loop engine of package request. Watches stay open and have their own connections.
package replay
