//go:build staging

package version

// This import keeps the version of the module in go.mod: `go mod tidy` removes modules that nothing imports. Without
// it, `go list -m all` fails, because k8s.io/kubernetes requires the module at v0.0.0, which exists only through the
// replace directives in its go.mod. No build has the tag staging, so no program contains the module.
import _ "k8s.io/sample-apiserver/pkg/apis/wardle"
