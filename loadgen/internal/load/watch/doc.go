// Package watch holds tens of thousands of watches open in one process and checks that each delivers every event that it must.
// Watches is the load; Changes makes the measured writes to the watched objects.
//
// # One read loop
//
// A watch has no goroutine. The read loop of its connection (package h2conn) scans the events in the bytes of the frames as
// they arrive. The scanner keeps only an event's type, key, resourceVersion and the stamp of a measured write. A scrape, a
// result or the end of a phase collects a loop's counts. The deliveries of one write that arrived in one read have the same
// latency. The time of arrival is when the kernel returned the read.
//
// # Connections
//
// Load.Connect selects which kind of real client is simulated. "shared": all informers of one process that use one client-go
// configuration share an HTTP/2 connection, and open another when it holds as many streams as the server allows. This is what
// controllers, operators and control plane components do, and also an API server that proxies for many clients. "each": every
// kubelet, kube-proxy, CNI agent and kubectl is a separate process with its own connection. A connection costs both sides a TLS
// handshake and buffers, and a shared connection fills TLS records with the events of many watches, so the two put different
// load on a server.
//
// # Protocol
//
// The protocol is the same as in client-go's reflector: bookmarks; a timeout of 5 to 10 minutes, at random; resumption from the
// last version seen. With start "list", all watches start from one list, a consistent read. With "watchList" each watch
// requests the initial events itself. If the server refuses that (400, 422), the watch lists for itself from then on.
//
// After a 410, as a status or as an ERROR event, a watch waits and then reads the state again: with its own list that is not
// older than the known version, or with the initial events if it started with them. A stream that ends or is lost is resumed
// immediately. A watch waits after a failed attempt, a malformed stream, and a stream that ended within a second without an
// event. The wait is 0.8 s and doubles to 30 s, each lengthened up to twofold at random, or Retry-After if that is longer.
// Unlike client-go, which would wait forever, an attempt is given up if it is not answered within a minute, or if the watch has
// not ended a minute after its timeout.
//
// # What is counted
//
// Failed: attempts to open a watch or to list that were refused or broke off, streams that ended within a second without an
// event, and ERROR events other than 410. Malformed: streams that were given up because they contained something other than an
// event of a known type with an object that has a version, or that ended in order within an event. Both scanners reject what
// the standard decoders reject in the parts that they read; their comments describe where they are stricter.
//
// For Lost, Duplicated and Reordered of measured writes, see ledger. For all other events, Kubernetes guarantees that versions
// of one resource are comparable integers (KEP-5504), and a watch, once its initial events are over, sends changes in the order
// of their versions. So an event with an older version than an earlier event on the same watch counts as Reordered, and an
// event with the same version and the same object as Duplicated, whichever client wrote it, also across reconnections. Two
// objects may share a version: etcd deletes all keys of an expired lease in one transaction.
//
// # Slow consumers
//
// Load.Slow makes a fraction of the watches read their stream's window and then a number of bytes per second, on separate
// connections. They must deliver like all others, and the server may end them. Delivery, BeforeAck and SlowestPerWatch leave
// them out, because their latency is intended.
//
// Package listwatch decides which request a watch makes next, and when. This package handles the streams itself, so that the
// ledger records each event's stamp on the read loop, under the connection's lock and without an allocation.
package watch
