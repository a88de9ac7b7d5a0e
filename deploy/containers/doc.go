// Package containers runs services of deploy/compose in containers. It needs no registry: it builds the images from the Go modules of
// the services. `make test-compose` runs its tests with the build tag compose.
package containers
