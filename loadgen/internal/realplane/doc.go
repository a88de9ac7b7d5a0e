// Package realplane contains tests of loadgen's packages against a real control plane, which the tests share. They
// check, for example, that the API server accepts the requests of operations, that metrics and the audit log mean what
// package breakdown assumes, that simulated nodes behave like kubelets, and that nothing is left behind in a user's
// cluster.
package realplane
