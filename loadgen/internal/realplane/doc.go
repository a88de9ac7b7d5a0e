// Package realplane tests packages of loadgen against a real control plane, which
// its tests share: the API server accepts what operations send, upstream's metrics
// and audit log mean what package breakdown assumes, a history holds, simulated
// nodes act like kubelets, and a user's cluster is left clean.
package realplane
