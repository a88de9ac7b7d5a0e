// Package replay sends the requests of a recorded trace again, at the times in the trace. Each client in the trace
// becomes a separate user. The objects that the requests need are created before the replay.
//
// Pure functions compute the schedule, the objects to create, and the fidelity of the replay (how close the sent
// requests are to the trace). The open-loop engine of package request sends the requests. Watches use separate
// connections and stay open.
package replay
