// Package containers runs services of deploy/compose in containers, from images that it builds of the services' Go
// modules: there is no registry. `make test-compose` runs its tests with the tag compose.
package containers
