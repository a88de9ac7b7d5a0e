// Package realplane holds the tests of operations against a real API server:
// what a stub cannot tell is whether it takes the objects, the forms, the
// tokens and the tenants for what they are meant to be.
package realplane
