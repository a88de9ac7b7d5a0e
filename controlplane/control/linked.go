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

// builtFrom stands before the revision in what a program says of itself.
const builtFrom = ", built from "

// Describe returns the text that the controlplane program prints for --version after its own: "with Kubernetes v1.37.1 and etcd 3.7.0, built from 0123456789ab".
func Describe(r Release, revision string) string {
	text := "with " + r.String()
	if revision != "" {
		text += builtFrom + revision
	}
	return text
}

// Described reports whether a controlplane program that says text of itself is one of a release, and the revision that it was
// built from, "" if it does not say.
func Described(text string, r Release) (revision string, ok bool) {
	text, revision, _ = strings.Cut(strings.TrimSpace(text), builtFrom)
	return revision, strings.HasSuffix(text, Describe(r, ""))
}
