// Package testplane runs scenarios in Go tests, on a real control plane that is started once
// for the tests of a package:
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
// The plane has etcd, kube-apiserver, kube-controller-manager and kube-scheduler, each a
// process; with Nodes, pods are scheduled and become Ready. It needs the program
// controlplane (`make build` in a checkout of Stormglass). The plane ends with the test
// process, however that ends.
//
// # Stability
//
// As package loadgen's: what this package exports is stable within v1alpha1.
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

// Plane is a control plane that the tests of a package share. The zero value is one of each
// component and no nodes. Set its fields before Main.
type Plane struct {
	// Nodes is how many simulated nodes there are for all tests. They have no taint: any pod
	// is scheduled to them. Nodes of a scenario are others, for pods of the scenario only.
	Nodes int
	// CRDs are YAML files of CustomResourceDefinitions, which are served when the tests begin.
	CRDs []string
	// ControlPlane configures the components, as `controlPlane:` of a scenario does.
	ControlPlane control.Config
	// Binary is the program controlplane; empty means $STORMGLASS_CONTROLPLANE, then next to
	// the test's program, then on PATH.
	Binary string

	running *control.Supervisor // nil: not started
	turn    sync.Mutex          // of scenarios, which would disturb each other
}

// Config returns a configuration for the code under test. Its user is a cluster-admin to whom
// priority and fairness applies, and it limits no requests: set QPS to the limit that the code
// has in production.
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

// Kubeconfig returns the path of a file for kubectl, of a user in system:masters.
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

// mustRun ends a test whose plane does not run.
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
