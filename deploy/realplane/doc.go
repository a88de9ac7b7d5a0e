// Package realplane holds the tests of deploy/ that need a control plane: that Prometheus scrapes it as the compose file configures,
// and that its API server accepts the manifests.
package realplane
