// Package check judges a history: the operations of clients and the events of watchers on a few registers during
// faults. A register is an object that clients write only by compare-and-set: each write names the version that it
// replaces and writes a unique value. So every observed state shows which write made it, and the writes of a register
// form a chain.
//
// The package checks the following, each by a pure function:
//
//   - linear.go: a register's operations have an order that agrees with their times and explains every response
//     (Herlihy and Wing 1990); the search uses porcupine (Wing and Gong 1993, Lowe 2017);
//   - lost.go: every acknowledged write is in the chain that leads to the
//     final state;
//   - reads.go: a client never reads an older state after a newer one;
//   - watchers.go: a watch delivers every change once and in order;
//   - states.go: every observed state was made by a write.
//
// Versions are resourceVersions and are compared as numbers. Kubernetes guarantees that they can be compared since
// 1.35 (KEP-5504). In earlier releases they are etcd's revisions, which increase with each write.
//
// Report.Unjudged lists the parts of the history that could not be judged, for example because a search took too
// long, a register has no final read, or a watcher was not connected at the end. Such a history does not pass.
package check
