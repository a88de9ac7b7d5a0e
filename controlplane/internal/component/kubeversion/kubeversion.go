// Package kubeversion gives the linked Kubernetes components their version in builds without the linker flags of
// the Makefile, as `go install` makes them. Without it they say v0.0.0-master+$Format:%H$, which kubectl
// does not parse. Import it for its effect.
//
// Kubernetes copies its version into registries of metrics and kubernetes_build_info while its packages are
// initialized, so a call from main would be too late. Go initializes the packages that are ready in the order of
// their import paths: this one, which imports only the versions, comes before any package of k8s.io that uses
// them.
package kubeversion

import (
	"runtime/debug"
	"strings"
	_ "unsafe" // go:linkname

	_ "k8s.io/client-go/pkg/version" // in user agents
	"k8s.io/component-base/version"
)

// These are Kubernetes' own variables, which its build sets by the linker.

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

// placeholder stands in the variables of a module's source; `git archive` would replace it.
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
	_ = version.SetDynamicVersion(v) // of the version just set it takes any
}

// release is the version of Kubernetes to which the linked k8s.io/component-base belongs: v1.37.1 publishes it
// as v0.37.1.
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
