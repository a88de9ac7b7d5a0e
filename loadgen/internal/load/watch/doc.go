// Package watch holds tens of thousands of watches open in one process and
// accounts for every event that each of them owes: Watches is the load, Changes
// are the measured writes to the watched objects.
//
// # One read loop
//
// A watch has no goroutine. Its events are scanned in the read loop of its
// connection (package h2conn), from the bytes of the frames as they come, by a
// scanner that keeps only an event's type, key, resourceVersion and the stamp of
// a measured write. A loop's counts are collected by a scrape, a result or the end
// of a phase: deliveries of one write that came in one read are one entry of the
// histograms. The time of arrival is that at which the kernel gave the read.
//
// # Connections
//
// Load.Connect says how real clients are imitated. "shared": all informers of
// one process that use one client-go configuration share an HTTP/2 connection,
// and open another when it holds as many streams as the server allows. So do
// controllers, operators and the components of a control plane, and so does
// one API server that proxies for many. "each": every kubelet, kube-proxy, CNI
// agent and kubectl is a process of its own, with a connection of its own. A
// connection costs both sides a TLS handshake and buffers, and shared ones fill
// TLS records with the events of many watches: the two are different storms.
//
// # Protocol
//
// That of client-go's reflector: bookmarks; an end after 5 to 10 minutes, at
// random; resumption from the last version seen. With start "list" one list,
// a consistent read, is made for all watches. With "watchList" each asks for
// the initial events itself, and, where the server refuses that (400, 422),
// lists for itself from then on. After a 410, as status or as ERROR event, a
// watch waits and then asks for the state again, as it began: by a list that
// is not older than the version known, made by itself, or by the initial
// events. A stream that ends or is lost is resumed at once; one that ended
// within a second and brought nothing, an attempt that failed, and a malformed
// stream are followed by a wait of 0.8 s that doubles to 30 s, each made up to
// twice as long at random, and by Retry-After if that is longer. Unlike
// client-go, which would wait for ever, a watch that is not answered within a
// minute or not ended a minute after its time is given up.
//
// # What is counted
//
// Failed: attempts to open a watch or to list that were refused or broke off,
// streams that brought nothing within a second, and ERROR events other than
// 410. Malformed: streams given up because what they brought was no event of a
// known type with an object that has a version, or that ended within one in
// good order. Both scanners refuse what the standard decoders refuse in what
// they look at; see them for where they are stricter.
//
// Lost, Duplicated, Reordered of measured writes: see ledger. Of all other
// events: Kubernetes promises that versions of one resource are comparable
// integers (KEP-5504), and a watch, once its initial events are over, sends
// changes in the order of their versions. So an event with an older version
// than one before it on the same watch counts as Reordered, and one of the same
// version and the same object as Duplicated, whichever client wrote it, also across
// reconnections. Two objects may share a version: keys that expire with one
// lease go in one transaction of etcd.
//
// # Slow consumers
//
// Load.Slow makes a fraction of the watches read their stream's window and then
// a number of bytes per second, on connections of their own. They owe deliveries
// like all others, and the server may end them. Delivery, BeforeAck and
// SlowestPerWatch leave them out, since their latency is intended.
//
// The metrics are in metrics.go. What to ask next and when is package listwatch's. The streams are this package's own:
// the ledger takes each event's stamp on the read loop, under the connection's lock and without an allocation.
package watch
