package realplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// The plane serves as a user's cluster: pods start on nodes whose certificates the plane signed, and afterwards no
// objects of the run are left.
func TestUserClusterIsLeftClean(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := scenario.Parse("test.yaml", []byte(`
apiVersion: stormglass/v1alpha1
kind: Scenario
name: test
nodes: {count: 2, devices: 2}
background: [{kind: requests, verb: list, resource: nodes, rate: 1/s}]
phases: [{name: rollout, for: 1s, actions: [{kind: deploy, name: web, replicas: 4, service: true, devices: 1}]}]
`), nil)
	must(t, err)
	theirs, err := cluster.FromKubeconfig(ctx, cluster.Kubeconfig{Files: plane.Cluster().Kubeconfigs["admin"]}, "r1", plan.Of(s), func(string) {})
	must(t, err)
	must(t, theirs.Setup(ctx))
	loadIsNoMaster(ctx, t, theirs)
	loadMayNotSetUp(ctx, t, theirs, s)
	rollOut(ctx, t, theirs, s)
	if err := theirs.Cleanup(ctx, nil); err != nil {
		t.Error(err)
	}
	nothingLeft(ctx, t, theirs.Admin)
}

// loadIsNoMaster checks that the load's user is not in system:masters, so priority and fairness applies to it, and that
// it may read the metrics.
func loadIsNoMaster(ctx context.Context, t *testing.T, theirs *cluster.Target) {
	t.Helper()
	load, err := kubernetes.NewForConfig(theirs.Load)
	must(t, err)
	who, err := load.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	must(t, err)
	if user := who.Status.UserInfo; user.Username != "system:serviceaccount:stormglass-r1:stormglass-load" || slices.Contains(user.Groups, "system:masters") {
		t.Errorf("load runs as %+v", user)
	}
	if _, err := load.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx); err != nil {
		t.Errorf("load may not read the metrics: %v", err)
	}
}

// loadMayNotSetUp checks that a run with the load's limited rights is refused before it creates objects.
func loadMayNotSetUp(ctx context.Context, t *testing.T, theirs *cluster.Target, s *scenario.Scenario) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority": %q}}],
"users": [{"name": "u", "user": {"tokenFile": %q}}],
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`,
		theirs.Admin.Host, theirs.Scrape[0].CAFile, theirs.Load.BearerTokenFile)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	_, err := cluster.FromKubeconfig(ctx, cluster.Kubeconfig{Files: path}, "r2", plan.Of(s), func(string) {})
	if err == nil || !strings.Contains(err.Error(), "system:serviceaccount:stormglass-r1:stormglass-load lacks permission to create namespaces; ") {
		t.Errorf("got %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "get /metrics") {
		t.Errorf("what is allowed is said to be missing: %v", err)
	}
}

// rollOut starts 4 pods on 2 nodes with the same number of devices, and silences the nodes.
func rollOut(ctx context.Context, t *testing.T, theirs *cluster.Target, s *scenario.Scenario) {
	t.Helper()
	w, err := workload.New(theirs.Load, workload.Options{
		Namespace: theirs.Namespace, Labels: theirs.Labels,
		NodeSelector: theirs.NodeSelector(), Tolerations: cluster.Tolerations(), DeviceClass: theirs.DeviceClass(),
	})
	must(t, err)
	tracking, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(tracking) }()
	defer func() {
		stop()
		<-ended
	}()
	identities, _ := theirs.Identities(s.Nodes)
	fleet, err := node.New(node.Config{
		Spec: s.Nodes, Identities: identities, Labels: theirs.Labels,
		Taints: theirs.Taints(), NamePrefix: "sg-r1-", Seed: 1, Log: t.Logf,
	})
	must(t, err)
	defer fleet.Stop(context.WithoutCancel(ctx))
	must(t, fleet.Start(ctx))
	must(t, w.Wait(ctx, func() bool { return w.Synced() && w.NodesReady(fleet.Names()) }))
	w.BeginPhase("rollout", time.Now())
	must(t, w.Do(ctx, s.Phases[0].Actions[0]))
	if err := w.Wait(ctx, func() bool { return w.AllPodsReady() }); err != nil {
		t.Fatalf("%v: %+v", err, w.Live())
	}
	got := w.Results()["rollout"]
	if got.PodsCreated != 4 || got.PodsReady != 4 || got.PodsUnmeasured != 0 || got.Startup.Count != 4 || got.ToScheduled.Count != 4 {
		t.Errorf("%+v", got)
	}
}

// nothingLeft checks that no object has the run's label or a name of the run.
func nothingLeft(ctx context.Context, t *testing.T, admin *rest.Config) {
	t.Helper()
	client, err := kubernetes.NewForConfig(admin)
	must(t, err)
	for _, path := range []string{
		"/api/v1/namespaces", "/api/v1/nodes", "/api/v1/pods", "/apis/coordination.k8s.io/v1/leases", "/apis/storage.k8s.io/v1/csinodes",
		"/apis/resource.k8s.io/v1/resourceslices", "/apis/resource.k8s.io/v1/deviceclasses", "/apis/resource.k8s.io/v1/resourceclaims",
		"/apis/certificates.k8s.io/v1/certificatesigningrequests", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "/apis/rbac.authorization.k8s.io/v1/roles",
	} {
		all, err := client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
		must(t, err)
		for _, mark := range []string{`"` + cluster.RunLabel + `":"r1"`, "stormglass-r1", "sg-r1-"} {
			if strings.Contains(string(all), mark) {
				t.Errorf("%s still has something with %q", path, mark)
			}
		}
	}
}
