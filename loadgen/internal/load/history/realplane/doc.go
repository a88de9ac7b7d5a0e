// Package realplane tests histories against a control plane of real
// components. It is a folder of its own so that the tests of package history
// stay without one.
package realplane
