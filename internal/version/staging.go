//go:build staging

package version

// The go.mod of k8s.io/kubernetes requires this module at v0.0.0, which only its replace directives make one, and `go list
// -m all` fails on it. Nothing is built from it: no build has this tag. The import keeps its version in go.mod, from which
// `go mod tidy` removes modules that nothing imports.
import _ "k8s.io/sample-apiserver/pkg/apis/wardle"
