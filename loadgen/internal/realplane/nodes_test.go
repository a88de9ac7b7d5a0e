package realplane

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// taint keeps pods of other tests off the nodes.
var taint = corev1.Taint{Key: "stormglass.example/simulated", Effect: corev1.TaintEffectNoSchedule}

// With each kind of identity, nodes become ready, run a Deployment, survive a failure and leave no objects behind.
func TestControlPlaneAcceptsNodesAsKubelets(t *testing.T) {
	config := loadConfig(t)
	labels := map[string]string{"stormglass.example/run": "test"}
	signer, err := node.NewSigner(config, plane.Cluster().NodeCA)
	must(t, err)
	csr := node.NewCSRSigner(config, labels, 0)
	for name, test := range map[string]struct {
		fidelity string
		ids      node.Identities
		api      *node.API
	}{
		"signed": {node.Kubelet, signer, kubeletAPI(t, config, signer)},
		"csr":    {node.Lean, csr, kubeletAPI(t, config, csr)},
		"shared": {node.Shared, node.NewShared(config), nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			rollout(t, ctx, config, node.Config{
				Spec: scenario.Nodes{
					Count: 5, Fidelity: test.fidelity, KubeProxy: test.fidelity != node.Shared, Zones: 3, CPU: "8", Memory: "32Gi", Pods: 110, LeaseRenew: scenario.Duration(10 * time.Second),
					StatusReport: scenario.Duration(5 * time.Minute), RegisterRate: 50,
				},
				Identities: test.ids, API: test.api, Labels: labels, Taints: []corev1.Taint{taint}, NamePrefix: name + "-", Seed: 1, Log: t.Logf,
			})
		})
	}
}

func rollout(t *testing.T, ctx context.Context, config *rest.Config, nodes node.Config) {
	client := kubernetes.NewForConfigOrDie(config)
	fleet, err := node.New(nodes)
	must(t, err)
	defer fleet.Stop(ctx)
	must(t, fleet.Start(ctx))

	deployments := client.AppsV1().Deployments("default")
	replicas := int32(20)
	app := map[string]string{"app": "web"}
	_, err = deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec: corev1.PodSpec{
					Containers:  []corev1.Container{{Name: "c", Image: "pause"}},
					Tolerations: []corev1.Toleration{{Key: taint.Key, Effect: taint.Effect}},
				},
			},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	await(t, ctx, client.AppsV1().RESTClient(), "deployments", &appsv1.Deployment{}, func(d any, _ int) bool {
		web, ok := d.(*appsv1.Deployment)
		return ok && web.Status.ReadyReplicas == replicas
	})

	if nodes.API != nil {
		podStreams(t, ctx, config)
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		must(t, err)
		accessToKubelet(t, ctx, config, pods.Items[0], fleet)
	}
	failed, err := fleet.Begin(node.Fault{Kind: control.NodeFailure, Fraction: 0.4})
	must(t, err)
	if len(failed) != 2 {
		t.Errorf("%d nodes failed, want 2", len(failed))
	}
	if nodes.API != nil && dial(ctx, kubeletAt(t, ctx, client, failed[0]), time.Minute) == nil {
		t.Error("the kubelet of a failed node responds")
	}
	_, err = fleet.Begin(node.Fault{Kind: control.NodeRecovery})
	must(t, err)
	background := metav1.DeletePropagationBackground
	must(t, deployments.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &background}))
	await(t, ctx, client.CoreV1().RESTClient(), "pods", &corev1.Pod{}, func(_ any, left int) bool { return left == 0 })

	fleet.Stop(ctx)
	if r := fleet.Results(); r.PodsStarted != int64(replicas) || r.MissedByServer+r.MissedByGenerator != 0 {
		t.Errorf("results %+v", r)
	}
	for what, n := range fleet.Results().Errors {
		// The Node authorizer learns of a binding a little later than the node. At first, it refuses requests for the
		// pod, its token and its ConfigMap, and nothing else.
		if strings.HasSuffix(what, " 403") && !strings.Contains(what, "serviceaccounts/token") && !strings.Contains(what, "configmaps") &&
			!strings.Contains(what, "pods/status") && what != "get pods 403" {
			t.Errorf("%d times %s", n, what)
		}
	}
	ours := metav1.ListOptions{LabelSelector: k8slabels.FormatLabels(nodes.Labels)}
	must(t, client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, ours))
	requests, err := client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
	must(t, err)
	if len(requests.Items) != 0 {
		t.Errorf("%d certificate requests still exist", len(requests.Items))
	}
}

// await lists and watches a resource of the default namespace until done returns true. done gets the last changed
// object, or nil after the list, and the number of objects.
func await(t *testing.T, ctx context.Context, getter cache.Getter, resource string, kind runtime.Object, done func(any, int) bool) {
	t.Helper()
	lw := cache.NewListWatchFromClient(getter, resource, "default", fields.Everything())
	var store cache.Store
	none := func(s cache.Store) (bool, error) {
		store = s
		return len(s.List()) == 0 && done(nil, 0), nil
	}
	_, err := watchtools.UntilWithSync(ctx, lw, kind, none, func(e watch.Event) (bool, error) {
		return done(e.Object, len(store.List())), nil
	})
	if err != nil {
		t.Fatalf("wait for %s: %v", resource, err)
	}
}
