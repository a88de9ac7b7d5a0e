// Package component holds the programs of the multi-call binary: the real
// control plane components and their command-line tools, each linked from its
// own module. It is the only importer of k8s.io/kubernetes and of the etcd
// server.
//
// One process runs one program. The components install signal handlers once
// per process (the API server's panics the second time), call os.Exit and
// share a global metrics registry, so only the chosen program is constructed.
//
// Being linked together still shows in /metrics: packages that register their
// families in init() do so in every Kubernetes component. Compared with the
// programs built alone, the scheduler and the controller manager also export
// authentication_*, authorization_* and authenticated_user_requests, the
// scheduler apiserver_cel_* and apiserver_kube_aggregator_*, and the scheduler
// and the API server node_collector_*. Ask for these families of their own
// component only. Nothing of Kubernetes shows in etcd's, or the other way round.
package component

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Program is one program of the binary: it takes the arguments after the
// program's name and gives its exit code, if it returns at all.
type Program func(args []string) int

// Lookup returns the program of that name; ok is false for any other name.
func Lookup(name string) (program Program, ok bool) {
	// The etcd tools' packages turn this on for the whole binary as they are
	// linked in; kubectl would then take "kubectl d" for some command.
	cobra.EnablePrefixMatching = name == "etcdctl" || name == "etcdutl"
	switch name {
	case control.KindEtcd:
		return runEtcd, true
	case control.KindAPIServer:
		return runAPIServer, true
	case control.KindScheduler:
		return runScheduler, true
	case control.KindControllerManager:
		return runControllerManager, true
	case "kubectl":
		return runKubectl, true
	case "etcdctl":
		return runEtcdctl, true
	case "etcdutl":
		return runEtcdutl, true
	}
	return nil, false
}

// Programs names all programs. They are linked into the plane's bin directory.
func Programs() []string {
	return slices.Concat(control.Kinds(), []string{"kubectl", "etcdctl", "etcdutl"})
}
