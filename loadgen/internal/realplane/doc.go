// Package realplane tests packages of loadgen against a real control plane, which its tests share. They test that the
// API server accepts the requests of operations, that upstream's metrics and audit log mean what package breakdown
// assumes, that a history is correct, that simulated nodes act like kubelets, and that a user's cluster is left clean.
package realplane
