package control

import (
	"runtime/debug"
	"strings"
	"sync"
)

// Linked returns the release whose components are linked into this program, or the newest release if none are linked.
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

// builtFrom separates the versions from the revision in the text that Describe returns.
const builtFrom = ", built from "

// Describe returns the text that the controlplane program prints after its own version for --version: "with Kubernetes
// v1.37.1 and etcd 3.7.0, built from 0123456789ab".
func Describe(r Release, revision string) string {
	text := "with " + r.String()
	if revision != "" {
		text += builtFrom + revision
	}
	return text
}

// Described reports whether text describes a controlplane program of release r. It also returns the revision from which
// that program was built, or "" if text does not contain a revision.
func Described(text string, r Release) (revision string, ok bool) {
	text, revision, _ = strings.Cut(strings.TrimSpace(text), builtFrom)
	return revision, strings.HasSuffix(text, Describe(r, ""))
}
