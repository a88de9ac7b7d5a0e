package report

import (
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/result"
)

// kubernetesText returns the version of Kubernetes, and the versions to which components were
// upgraded or downgraded during the run, such as "v1.36.3, then v1.37.1 for kube-apiserver".
func kubernetesText(v result.Versions) string {
	return versionText(v.Kubernetes, v.Moves, "kubernetes")
}

// etcdText returns the version of etcd, and the versions to which members were upgraded or downgraded during the run.
func etcdText(v result.Versions) string { return versionText(v.Etcd, v.Moves, "etcd") }

func versionText(start string, moves []result.VersionMove, of string) string {
	text := terminal.Clean(start)
	for _, m := range moves {
		if m.Of != of {
			continue
		}
		text += ", then " + terminal.Clean(m.Version)
		if len(m.On) > 0 {
			text += " for " + terminal.Clean(strings.Join(m.On, ", "))
		}
	}
	return text
}
