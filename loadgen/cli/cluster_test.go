package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
)

// TestRunOnAUsersCluster runs against a plane that was not started for the
// run, through a kubeconfig, and leaves nothing there.
func TestRunOnAUsersCluster(t *testing.T) {
	useSharedPlane(t)
	kubeconfig := plane.Cluster().Kubeconfigs["admin"]

	// Without a terminal for the confirmation, the run is refused and creates nothing.
	dir := filepath.Join(planetest.Dir(t), "run")
	p := startLoadgen(t, "run", "testdata/mini.yaml", "--out", dir, "--kubeconfig", kubeconfig)
	if code := p.wait(); code != 2 || !strings.Contains(strings.Join(p.said, "\n"), "add --yes") {
		t.Errorf("without --yes: exit code %d\n%s", code, strings.Join(p.said, "\n"))
	}
	wantNothingLeft(t, kubeconfig)

	// The cluster does not expose etcd's metrics: a warning says that the gate on them has no data, and --without-gate leaves
	// the gate out.
	p = startLoadgen(t, "run", "testdata/mini.yaml", "--out", dir, "--kubeconfig", kubeconfig)
	p.awaitLine("gate leader-changes will have no data (exit 3), because the metrics of etcd are not available")
	p.wait()

	p = startLoadgen(t, "run", "testdata/mini.yaml", "--out", dir, "--kubeconfig", kubeconfig, "--yes", "--without-gate", "leader-changes")
	wantPass(t, p, dir)
	wantNothingLeft(t, kubeconfig)

	// If only the API server can find the mistake in an object, the run ends with its message.
	refused := filepath.Join(t.TempDir(), "refused.yaml")
	err := os.WriteFile(refused, []byte(`apiVersion: stormglass/v1alpha1
kind: Scenario
name: refused
phases: [{name: load, for: 1s, load: [{kind: requests, verb: get, resource: services, rate: 1/s, object: {apiVersion: v1, kind: Service, spec: {type: Nonsense}}}]}]
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p = startLoadgen(t, "run", refused, "--out", filepath.Join(t.TempDir(), "run"), "--kubeconfig", kubeconfig, "--yes")
	if code := p.wait(); code != exitcode.Environment || !strings.Contains(strings.Join(p.said, "\n"), `Unsupported value: "Nonsense"`) {
		t.Errorf("with a refused object: exit code %d\n%s", code, strings.Join(p.said, "\n"))
	}
	wantNothingLeft(t, kubeconfig)
}

// TestCleanupAfterAKilledRun: `loadgen cleanup` keeps the objects of a live run. With the directory of a killed run, it
// removes this run's objects, also namespaces and nodes that have lost their label.
func TestCleanupAfterAKilledRun(t *testing.T) {
	useSharedPlane(t)
	kubeconfig := plane.Cluster().Kubeconfigs["admin"]
	dir := filepath.Join(planetest.Dir(t), "run")
	p := startLoadgen(t, "run", "testdata/mini.yaml", "--out", dir, "--kubeconfig", kubeconfig, "--yes",
		"--set", "phases.fan-out.for=10m")
	p.awaitLine("phase fan-out")
	run := func() string {
		return kubectl(t, "get", "namespaces,nodes,leases", "-l", cluster.RunLabel, "-o", "name")
	}
	before := run()
	c := startLoadgen(t, "cleanup", "--kubeconfig", kubeconfig, "--yes")
	c.awaitLine("is skipped, because it renewed the cluster's lock within the last minute")
	c.wantExit(0)
	if after := run(); after != before || !strings.Contains(after, "stormglass-run") {
		t.Errorf("objects of the live run before:\n%s\nafter:\n%s", before, after)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait()
	if left := labelled(t, kubeconfig); len(left) == 0 {
		t.Fatal("the killed run left no objects, so this test tests nothing")
	}
	left := labelled(t, kubeconfig)
	startLoadgen(t, "cleanup", "--kubeconfig", kubeconfig, "--dry-run").wantExit(0)
	if still := labelled(t, kubeconfig); !slices.Equal(left, still) {
		t.Errorf("the dry run changed the cluster from\n%s\nto\n%s", left, still)
	}
	kubectl(t, "label", "namespaces,nodes", "-l", cluster.RunLabel, cluster.RunLabel+"-")
	startLoadgen(t, "cleanup", dir, "--kubeconfig", kubeconfig, "--yes").wantExit(0)
	wantNothingLeft(t, kubeconfig)
	if all := kubectl(t, "get", "namespaces,nodes", "-o", "name"); strings.Contains(all, "/stormglass-") || strings.Contains(all, "/sg-") {
		t.Errorf("left behind:\n%s", all)
	}
}

// If the finalizer of another program keeps an object, the run says so and ends with exit code 4. It names the object and
// the command that removes the finalizer.
func TestObjectThatAFinalizerKeepsIsNamed(t *testing.T) {
	useSharedPlane(t)
	file := filepath.Join(t.TempDir(), "kept.yaml")
	err := os.WriteFile(file, []byte(`apiVersion: stormglass/v1alpha1
kind: Scenario
name: kept
record: {interval: 1s}
objects:
  - templates:
      - object: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: sgx-kept, finalizers: [example.com/keep]}, value: 5}
phases:
  - {name: only, for: 1s, load: [{name: list, kind: requests, verb: list, resource: configmaps, rate: 5/s}]}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := plane.Cluster().Kubeconfigs["admin"]
	dir := filepath.Join(planetest.Dir(t), "run")
	p := startLoadgen(t, "run", file, "--out", dir, "--kubeconfig", kubeconfig, "--yes")
	p.awaitLine("some objects could not be removed yet: delete PriorityClass sgx-kept: not gone yet")
	p.signalUntil(syscall.SIGINT, "interrupted: shutting down cleanly and removing")
	p.signalUntil(syscall.SIGTERM, "second signal: ")
	p.wantExit(exitcode.Environment)
	left := readResult(t, dir).Run.Left
	_, command, found := strings.Cut(left, "finalizers block the deletion of sgx-kept (example.com/keep): `kubectl ")
	command, _, _ = strings.Cut(command, "`")
	if last := p.said[len(p.said)-1]; !found || last != "loadgen: "+left {
		t.Fatalf("last line:\n%s\nremaining objects:\n%s", last, left)
	}
	kubectl(t, strings.Fields(strings.ReplaceAll(command, "'", ""))...)
	if all := kubectl(t, "get", "priorityclasses", "-o", "name"); strings.Contains(all, "sgx-kept") {
		t.Errorf("left behind:\n%s", all)
	}
	removeLeft(t, left)
}

func wantNothingLeft(t *testing.T, kubeconfig string) {
	t.Helper()
	if left := labelled(t, kubeconfig); len(left) > 0 {
		t.Errorf("left behind: %s", strings.Join(left, ", "))
	}
}

// labelled lists the objects with a run's label, of every kind that runs create.
func labelled(t *testing.T, kubeconfig string) []string {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, kind := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "namespaces"},
		{Version: "v1", Resource: "nodes"},
		{Version: "v1", Resource: "pods"},
		{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "serviceaccounts"},
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"},
	} {
		list, err := client.Resource(kind).List(t.Context(), metav1.ListOptions{LabelSelector: cluster.RunLabel})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			left = append(left, kind.Resource+" "+o.Name)
		}
	}
	// A kubelet's Lease has no labels; apart from the plane's own node only simulated nodes have
	// one.
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	list, err := client.Resource(leases).Namespace("kube-node-lease").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Items {
		if o.Name != "control-plane" {
			left = append(left, "lease "+o.Name)
		}
	}
	return left
}

// TestObjectsThatLoseTheirLabelAreRemoved: a run removes its objects even if its actions change their labels.
func TestObjectsThatLoseTheirLabelAreRemoved(t *testing.T) {
	useSharedPlane(t)
	kubeconfig := plane.Cluster().Kubeconfigs["admin"]
	dir := filepath.Join(planetest.Dir(t), "run")
	startLoadgen(t, "run", "testdata/strip.yaml", "--out", dir, "--kubeconfig", kubeconfig, "--yes").wantExit(3) // without gates nothing passes
	wantNothingLeft(t, kubeconfig)
	all := kubectl(t, "get", "priorityclasses,namespaces,nodes,clusterroles,customresourcedefinitions", "-o", "name")
	for _, name := range []string{"sgx-", "/stormglass-", "/sg-"} {
		if strings.Contains(all, name) {
			t.Errorf("left behind:\n%s", all)
			break
		}
	}
}
