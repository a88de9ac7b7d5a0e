package report

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

func TestVersionsAfterAMove(t *testing.T) {
	v := result.Versions{Kubernetes: "v1.36.3", Etcd: "3.6.14", Moves: []result.VersionMove{
		{Of: "etcd", Version: "3.7.0"},
		{Of: "kubernetes", Version: "v1.37.1", On: []string{"kube-apiserver", "kube-scheduler-1"}},
		{Of: "kubernetes", Version: "v1.36.3", On: []string{"kube-apiserver-0"}},
	}}
	for got, want := range map[string]string{
		etcdText(v):       "3.6.14, then 3.7.0",
		kubernetesText(v): "v1.36.3, then v1.37.1 for kube-apiserver, kube-scheduler-1, then v1.36.3 for kube-apiserver-0",
		kubernetesText(result.Versions{Kubernetes: "v1.37.1"}): "v1.37.1",
		etcdText(result.Versions{}):                            "",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
