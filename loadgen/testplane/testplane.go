// Package testplane runs scenarios in Go tests. The tests of a package share one real control plane:
//
//	var plane = testplane.Plane{Nodes: 10}
//
//	func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }
//
//	func TestStorm(t *testing.T) {
//		startOperator(t, plane.Config(t))
//		plane.Run(t, "testdata/storm.yaml")
//	}
//
// The plane runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler, each as a process. If Plane.Nodes is
// set, pods are scheduled and become Ready. The plane needs the program controlplane (`make build` in a checkout of
// Stormglass). The plane ends when the test process ends, even if the process crashes.
//
// # Stability
//
// docs/reference/support.md says which exported names are stable.
package testplane

import (
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/controlplane/control"
)

// BinaryEnv is the environment variable that names the program controlplane.
const BinaryEnv = "STORMGLASS_CONTROLPLANE"

// Plane is a control plane that the tests of a package share. The zero value has one instance of each component and no
// nodes. Set the fields before you call Main.
type Plane struct {
	// Nodes is the number of simulated nodes that all tests share. The nodes have no taints, so any pod can be scheduled to
	// them. A scenario may have additional nodes, which accept only pods of the scenario.
	Nodes int
	// CRDs lists YAML files with CustomResourceDefinitions. The definitions are established before the first test runs.
	CRDs []string
	// ControlPlane configures the components, as `controlPlane:` in a scenario does.
	ControlPlane control.Config
	// Binary is the path of the program controlplane. If it is empty, Main uses $STORMGLASS_CONTROLPLANE; if that is not set
	// either, Main looks next to the test binary and then on PATH.
	Binary string

	running *control.Supervisor // nil until the plane has been started
	turn    sync.Mutex          // locked while a scenario runs, because scenarios would disturb each other
}

// Config returns a client configuration for the code under test. Its user is a cluster-admin who is subject to API Priority and
// Fairness. It has no client-side rate limit: set QPS to the limit that the code has in production.
func (p *Plane) Config(t testing.TB) *rest.Config {
	t.Helper()
	p.mustRun(t)
	cfg, err := clientcmd.BuildConfigFromFlags("", p.running.Cluster().Kubeconfigs["loadgen"])
	if err != nil {
		t.Fatalf("testplane: %v", err)
	}
	cfg.QPS = -1
	return cfg
}

// Kubeconfig returns the path of a kubeconfig file, for kubectl. Its user is in the group system:masters.
func (p *Plane) Kubeconfig(t testing.TB) string {
	t.Helper()
	p.mustRun(t)
	return p.running.Cluster().Kubeconfigs["admin"]
}

// Dir returns the plane's directory, for loadgen.Options.Plane.
func (p *Plane) Dir(t testing.TB) string {
	t.Helper()
	p.mustRun(t)
	return p.running.Cluster().Dir
}

func (p *Plane) mustRun(t testing.TB) {
	t.Helper()
	if p.running == nil {
		t.Fatal("testplane: the control plane was not started: write func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }")
	}
	select {
	case <-p.running.Done():
		t.Fatalf("testplane: the control plane has ended: %v", p.running.Err())
	default:
	}
}
