package control

import (
	"runtime/debug"
	"strings"
	"sync"
)

// Linked is the release whose components this program links, as it was built. A program that links none has the newest.
var Linked = sync.OnceValue(func() Release {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Newest()
	}
	versions := map[string]string{}
	for _, dep := range info.Deps {
		versions[dep.Path] = dep.Version
	}
	kubernetes, etcd := versions["k8s.io/kubernetes"], versions["go.etcd.io/etcd/server/v3"]
	if kubernetes == "" || etcd == "" {
		return Newest()
	}
	parts := strings.Split(strings.TrimPrefix(kubernetes, "v"), ".")
	return Release{Minor: strings.Join(parts[:min(2, len(parts))], "."), Kubernetes: kubernetes, Etcd: strings.TrimPrefix(etcd, "v")}
})
