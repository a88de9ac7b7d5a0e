// Package containers runs the services of deploy/compose in containers. It needs no registry, because it builds the
// images from the Go modules of the services. `make test-compose` runs the package's tests with the build tag compose.
package containers
