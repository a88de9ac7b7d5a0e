// Package realplane holds the tests of deploy/ that need a control plane: a
// Prometheus that watches it as the compose file says, and manifests that its
// API server accepts.
package realplane
