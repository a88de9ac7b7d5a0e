package mirror

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/supervisor"
)

// A control-plane node has the version of the oldest API server. After an upgrade, the version changes before the next
// regular status report.
func TestNodeVersionFollowsAnUpgrade(t *testing.T) {
	older, _ := control.ReleaseOf("1.36")
	release := older
	api := fake.NewClientset()
	n := nodeAt(api, &release)
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
		t.Errorf("version before the upgrade = %s, want %v", got, older.Kubernetes)
	}
	release = control.Newest()
	if got := version(); got != release.Kubernetes {
		t.Errorf("version after the upgrade = %s, want %v", got, release.Kubernetes)
	}
	requests := len(api.Actions())
	version()
	if more := len(api.Actions()) - requests; more != 1 { // this test's own request
		t.Errorf("without a change, the node sent %d requests", more-1)
	}
}

// nodeAt returns a node with one API server.
func nodeAt(api *fake.Clientset, release *control.Release) *node {
	child := &process.Child{Started: time.Now()}
	cfg := Config{Components: func() []supervisor.Snapshot {
		return []supervisor.Snapshot{{Name: "kube-apiserver-0", Kind: control.KindAPIServer, Release: *release, Child: child}}
	}}
	return &node{cfg: &cfg, name: nodeName(0), admin: api, kubelet: api, started: time.Now()}
}

// If the API server refuses connections, a node waits and later renews its Lease again.
func TestNodeOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, release := fake.NewClientset(), control.Newest()
		var away atomic.Bool
		api.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, syscall.ECONNREFUSED
		})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { nodeAt(api, &release).run(ctx) })
		for _, refuses := range []bool{false, true, false} {
			away.Store(refuses)
			time.Sleep(3 * renewEvery / 2) // in virtual time
		}
		lease, err := api.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), nodeName(0), metav1.GetOptions{})
		if err != nil || lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) > renewEvery {
			t.Errorf("lease = %v, %v; want a recent renewal", lease, err)
		}
		stop()
		running.Wait()
	})
}
