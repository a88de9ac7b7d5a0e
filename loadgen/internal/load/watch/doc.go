// Package watch keeps tens of thousands of watches open in one process and checks that each watch delivers all the
// events that it must deliver. Watches is the load. Changes is the operation of a second load, which writes to the
// watched objects and measures the deliveries of its writes.
//
// # One read loop
//
// A watch has no goroutine. The read loop of a connection (package h2conn) scans the events in the bytes of the frames
// as they arrive. The scanner keeps little more than an event's type, key and resourceVersion, and its stamp: an
// annotation with which Changes marks each of its writes.
// The arrival time of an event is the time at which the kernel returned the read, so all deliveries of one write in one
// read have the same latency. The package collects the counts of all read loops at the end
// of each phase, and whenever a scrape or the results need them.
//
// # Connections
//
// Load.Connect selects the kind of client to simulate. With "shared", watches share HTTP/2 connections, like the
// informers of one process with the same client-go configuration. A new connection is opened when all others have as
// many streams as the server allows. Controllers, operators and control plane components work like this, as does an API
// server that proxies for many clients. With "each", every watch has its own connection, like a kubelet, kube-proxy,
// CNI agent or kubectl: each of them is a separate process. The two cause different load: each connection costs client
// and server a TLS handshake and buffers, whereas a shared connection fills TLS records with the events of many
// watches.
//
// # Protocol
//
// Watches follow the protocol of client-go's reflector: bookmarks, a random timeout of 5 to 10 minutes, and resumption
// from the newest version seen. With start "list", all watches start from the version of one list, a consistent read.
// With "watchList", each watch requests the initial events itself. If the server refuses such a request (400, 422), all
// watches send lists afterwards.
//
// After a 410 (an HTTP status or an ERROR event), a watch waits and then reads the state again. It uses initial events
// if it started with them, and otherwise a list that must not be older than the known version. A stream that ends or is
// lost is resumed immediately. A watch also waits after a failed attempt, after a malformed stream, and after a stream
// that ended within a second without an event. The first wait is 0.8 s. It doubles up to 30 s. Each wait is multiplied
// by a random factor from 1 to 2, or replaced by Retry-After if that is longer. The watch gives up an attempt after a
// minute without a response, and a stream a minute after its timeout; client-go would wait forever.
//
// # What is counted
//
// Failed counts failed attempts to open a watch or to list, streams that ended within a second without an event, and
// ERROR events other than 410. Malformed counts streams that ended without an error in the middle of an event, or
// contained anything other than an event of a known type whose object has a version. There are two scanners: one for
// JSON and CBOR, one for protobuf. In the fields that they read, both reject everything that the standard decoders reject.
// Their comments describe where they are stricter.
//
// The comment of ledger describes Lost, Duplicated and Reordered for measured writes. For all other events, the package
// relies on two guarantees of Kubernetes: versions of one resource are comparable integers (KEP-5504), and a watch
// sends changes in the order of their versions after its initial events. So an event with an older version than an
// earlier event of the watch counts as Reordered, and an event with the same version and the same object counts as
// Duplicated. This applies to changes by any client, and also across reconnections. Two objects may have the same
// version: etcd deletes all keys of an expired lease in one transaction.
//
// # Slow consumers
//
// Load.Slow makes a fraction of the watches slow consumers, on separate connections: each reads as much as its stream's
// initial window, and then a fixed number of bytes per second. Slow watches must deliver all events like other watches,
// but the server may end them. Delivery, BeforeAck and SlowestPerWatch exclude them, because their latency is intended.
//
// Package listwatch decides which request a watch sends next, and when. Package watch reads the streams itself: the
// read loop passes the stamp of each event to the ledger, under the connection's lock and without an allocation.
package watch
