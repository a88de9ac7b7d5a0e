// Package replay sends the requests of a recorded trace again: each at its time, as a separate user for each
// client of the trace, on objects that are made beforehand.
//
// The schedule, the objects to make and the judgement of fidelity are pure functions of the trace, the options and
// the requests sent. Requests go through the open-loop engine of package request. Watches stay open and have their
// own connections.
package replay
