// Package kubeversion sets the version of the linked Kubernetes components in builds without the Makefile's linker
// flags, such as builds by `go install`. Otherwise the components would report v0.0.0-master+$Format:%H$, which
// kubectl cannot parse. Import it for its side effect.
//
// Kubernetes copies its version into metric registries and kubernetes_build_info while its packages are initialized,
// so a call from main would be too late. Go initializes packages whose imports are ready in the order of their import
// paths. This package imports only the version packages, so it comes before any package of k8s.io that uses them.
package kubeversion

import (
	"runtime/debug"
	"strings"
	_ "unsafe" // go:linkname

	_ "k8s.io/client-go/pkg/version" // the version in user agents
	"k8s.io/component-base/version"
)

// These variables belong to Kubernetes, whose own build sets them with the linker.

//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string

//go:linkname gitMajor k8s.io/component-base/version.gitMajor
var gitMajor string

//go:linkname gitMinor k8s.io/component-base/version.gitMinor
var gitMinor string

//go:linkname gitCommit k8s.io/component-base/version.gitCommit
var gitCommit string

//go:linkname gitTreeState k8s.io/component-base/version.gitTreeState
var gitTreeState string

//go:linkname clientVersion k8s.io/client-go/pkg/version.gitVersion
var clientVersion string

//go:linkname clientCommit k8s.io/client-go/pkg/version.gitCommit
var clientCommit string

// placeholder occurs in the default values of gitVersion and gitCommit. The source in a Go module still contains it,
// because only `git archive` replaces it.
const placeholder = "$Format:"

func init() {
	if !strings.Contains(gitVersion, placeholder) {
		return // the linker has set it
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return
	}
	v, ok := release(build.Deps)
	if !ok {
		return
	}
	gitVersion, gitCommit, gitTreeState = v, "unknown", "archive"
	clientVersion, clientCommit = v, "unknown"
	parts := strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3)
	gitMajor, gitMinor = parts[0], parts[1]
	_ = version.SetDynamicVersion(v) // cannot fail: it accepts the version just set
}

// release returns the version of Kubernetes that the linked module k8s.io/component-base belongs to. The module of
// Kubernetes v1.37.1 has version v0.37.1.
func release(linked []*debug.Module) (v string, ok bool) {
	for _, m := range linked {
		if m.Path != "k8s.io/component-base" {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		rest, ok := strings.CutPrefix(m.Version, "v0.")
		return "v1." + rest, ok && strings.Count(rest, ".") > 0
	}
	return "", false
}
