// Package check judges a history: what clients and watchers of a few registers
// saw of them through faults. A register is an object that is written by
// compare-and-set only: each write names the version that it replaces and
// carries a value that no other write does. So every state that is observed
// tells which write made it, and the writes of a register are a chain.
//
// What is checked, each by a pure function:
//
//   - linear.go: there is one order of a register's operations, true to their
//     times, in which every answer is right (Herlihy and Wing 1990), searched
//     with porcupine (Wing and Gong 1993, Lowe 2017);
//   - lost.go: every acknowledged write is in the chain that leads to the
//     final state;
//   - reads.go: what one client reads does not go backwards;
//   - watchers.go: a watch delivers every change once and in order;
//   - states.go: no state is seen that no write can have made.
//
// Versions are Kubernetes' resourceVersions and are compared as numbers. That
// is promised since 1.35 (KEP-5504, comparable resource versions), and they
// were etcd's revisions, which grow with each write, before.
//
// A search that takes too long, a register without a final read, a watcher
// that was not connected at the end are told in Report.Unjudged: they are no
// pass.
package check
