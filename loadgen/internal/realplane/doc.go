// Package realplane contains tests of loadgen's packages against one real control plane, which all tests share. They
// check, for example, that the API server accepts the requests of operations, that metrics and the audit log mean what
// package breakdown assumes, and that nothing is left behind in a user's cluster.
package realplane
