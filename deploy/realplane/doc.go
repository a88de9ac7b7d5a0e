// Package realplane holds the tests of deploy/ that need a control plane. They test that Prometheus scrapes the plane
// with the configuration of the compose file, and that the plane's API server accepts the manifests.
package realplane
