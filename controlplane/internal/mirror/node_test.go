package mirror

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/supervisor"
)

// A control-plane node has the version of the oldest API server, also after an upgrade: it does not wait for its next report.
func TestNodeVersionFollowsAnUpgrade(t *testing.T) {
	older, _ := control.ReleaseOf("1.36")
	release, child := older, &process.Child{Started: time.Now()}
	cfg := Config{Components: func() []supervisor.Snapshot {
		return []supervisor.Snapshot{{Name: "kube-apiserver-0", Kind: control.KindAPIServer, Release: release, Child: child}}
	}}
	api := fake.NewClientset()
	n := &node{cfg: &cfg, name: nodeName(0), admin: api, kubelet: api, started: time.Now()}
	version := func() string {
		if err := n.sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := api.CoreV1().Nodes().Get(t.Context(), n.name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Status.NodeInfo.KubeletVersion
	}
	if got := version(); got != older.Kubernetes {
		t.Errorf("before: %s", got)
	}
	release = control.Newest()
	if got := version(); got != release.Kubernetes {
		t.Errorf("after: %s", got)
	}
	requests := len(api.Actions())
	version()
	if more := len(api.Actions()) - requests; more != 1 { // the test's own
		t.Errorf("%d more requests without a change", more-1)
	}
}
