package run

import (
	"reflect"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

func TestMovesOfVersions(t *testing.T) {
	m := followMoves(map[string]string{
		"etcd-0": "3.6.14", "kube-apiserver-0": "v1.36.3", "kube-apiserver-1": "v1.36.3", "kube-scheduler-0": "v1.36.3", "kube-controller-manager-0": "v1.36.3",
	})
	for _, s := range [][2]string{
		{"etcd-0", "3.7.0"}, {"kube-apiserver-0", "v1.37.1"},
		{"etcd-0", "3.7.0"}, // a restart does not change the version
		{"metrics-server-0", ""}, {"kube-apiserver-1", "v1.37.1"}, {"kube-scheduler-0", "v1.37.1"},
		{"kube-scheduler-0", "v1.36.3"}, {"kube-apiserver-1", "v1.36.3"}, {"etcd-0", "3.6.14"},
	} {
		m.started(s[0], s[1])
	}
	want := []result.VersionMove{
		{Of: "etcd", Version: "3.7.0"}, {Of: "kubernetes", Version: "v1.37.1", On: []string{"kube-apiserver", "kube-scheduler"}},
		{Of: "kubernetes", Version: "v1.36.3", On: []string{"kube-scheduler", "kube-apiserver-1"}}, {Of: "etcd", Version: "3.6.14"},
	}
	if got := m.list(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (&moves{}).list(); got != nil {
		t.Errorf("version changes of an empty moves: %+v", got)
	}
}
