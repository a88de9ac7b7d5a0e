// Package replay sends the requests of a recording again, at their recorded times. Each client in the recording becomes
// a separate user. Before the replay, the load creates the objects that the requests need.
//
// Pure functions compute the schedule, the objects to create, and the fidelity of the replay (how close the sent
// requests are to the recording). The open-loop engine of package request sends the requests. Watches use separate
// connections and stay open.
package replay
