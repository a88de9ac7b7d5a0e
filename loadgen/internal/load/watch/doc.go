// Package watch holds tens of thousands of watches open in one process and
// accounts for every event that each of them owes: Watches is the load, Changes
// are the measured writes to the watched objects.
//
// # One read loop
//
// A watch has no goroutine. The read loop of its connection (package h2conn) scans the events in the bytes of the
// frames as they arrive. The scanner keeps only an event's type, key, resourceVersion and the stamp of a measured
// write. A scrape, a result or the end of a phase collects a loop's counts: deliveries of one write that arrived in
// one read are one entry of the histograms. The time of arrival is when the kernel returned the read.
//
// # Connections
//
// Load.Connect selects which real clients are imitated. "shared": all informers of one process that use one client-go
// configuration share an HTTP/2 connection, and open another when it holds as many streams as the server allows.
// Controllers, operators and the components of a control plane do so, and an API server that proxies for many clients
// does too. "each": every kubelet, kube-proxy, CNI agent and kubectl is a separate process with its own connection. A
// connection costs both sides a TLS handshake and buffers, and shared ones fill TLS records with the events of many
// watches: the two are different storms.
//
// # Protocol
//
// The protocol is the same as in client-go's reflector: bookmarks; an end after 5 to 10 minutes, at random; resumption
// from the last version seen. With start "list", one list, a consistent read, serves all watches. With "watchList"
// each watch requests the initial events itself. If the server refuses that (400, 422), the watch lists for itself
// from then on.
//
// After a 410, as a status or as an ERROR event, a watch waits and then reads the state again, as it began: by a list
// that is not older than the known version, made by itself, or by the initial events. A stream that ends or is lost is
// resumed immediately. A watch waits after a stream that ended within a second and brought nothing, a failed attempt,
// and a malformed stream. The wait is 0.8 s and doubles to 30 s, each lengthened up to twofold at random, or
// Retry-After if that is longer. Unlike client-go, which would wait forever, a watch is given up if it is not answered
// within a minute or has not ended a minute after its time.
//
// # What is counted
//
// Failed: attempts to open a watch or to list that were refused or broke off, streams that brought nothing within a
// second, and ERROR events other than 410. Malformed: streams given up because they brought anything other than an
// event of a known type with an object that has a version, or that ended in order within an event. Both scanners
// reject what the standard decoders reject in the parts that they read; their comments describe where they are
// stricter.
//
// For Lost, Duplicated and Reordered of measured writes see ledger. For all other events, Kubernetes promises that
// versions of one resource are comparable integers (KEP-5504), and a watch, once its initial events are over, sends
// changes in the order of their versions. So an event with an older version than an earlier one on the same watch
// counts as Reordered, and an event with the same version and the same object as Duplicated, whichever client wrote
// it, also across reconnections. Two objects may share a version: keys that expire with one lease go in one
// transaction of etcd.
//
// # Slow consumers
//
// Load.Slow makes a fraction of the watches read their stream's window and then a number of bytes per second, on
// separate connections. They owe deliveries like all others, and the server may end them. Delivery, BeforeAck and
// SlowestPerWatch leave them out, because their latency is intended.
//
// The metrics are in metrics.go. What to ask next and when is package listwatch's. The streams are this package's own:
// the ledger takes each event's stamp on the read loop, under the connection's lock and without an allocation.
package watch
