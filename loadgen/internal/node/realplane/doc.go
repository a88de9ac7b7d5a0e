// Package realplane holds the tests of simulated nodes against a real control
// plane: what a stub cannot tell is whether the Node authorizer, NodeRestriction
// and the controllers take them for kubelets.
package realplane
