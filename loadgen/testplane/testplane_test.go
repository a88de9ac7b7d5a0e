package testplane_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/testplane"
)

var plane = testplane.Plane{Nodes: 3, CRDs: []string{filepath.Join("testdata", "crd.yaml")}}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func TestPrograms(t *testing.T) { planetest.Programs(t) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "testplane-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if plane.Binary, err = planetest.Build(dir); err != nil {
		panic(err)
	}
	return plane.Main(m)
}

// An operator is judged by its own figures while sites are created.
func TestOperatorInAStorm(t *testing.T) {
	startOperator(t, plane.Config(t))
	var res result.Result
	failed := failures(t, func(t testing.TB) {
		res = plane.Run(t, "testdata/sites.yaml", func(o *loadgen.Options) {
			o.Measurements = map[string]loadgen.Measurement{"reconcile": newReconcile()}
		})
	})
	for _, g := range res.Gates {
		if g.Verdict != result.Pass && !planetest.Unjudged(res, g) {
			t.Errorf("gate %s: %s (%s)", g.Name, g.Verdict, g.Detail)
		}
	}
	if failed != "" && !planetest.Starved(res) {
		t.Error(failed)
	}
	if made := res.Measurements.Phases[0].Custom; len(made) != 1 || len(made[0].Figures) != 2 {
		t.Errorf("%+v", made)
	}
	nothingOfRun(t, res.Run)
}

// nothingOfRun checks that the run has left no objects in the plane.
func nothingOfRun(t *testing.T, run result.Run) {
	t.Helper()
	client, err := kubernetes.NewForConfig(plane.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	left, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: cluster.RunLabel + "=" + run.ID})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d namespaces are left: %v", len(left.Items), err)
	}
}

// A pod that the operator creates is scheduled and becomes Ready: the plane has a scheduler, controllers and nodes.
func TestPodsOfTheOperatorRun(t *testing.T) {
	cfg := plane.Config(t)
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	startOperator(t, cfg)
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "site-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	site := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{siteLabel: "yes"}}, Data: map[string]string{"image": "example.com/shop"}}
	if _, err := client.CoreV1().ConfigMaps(namespace.Name).Create(t.Context(), site, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	events, err := client.AppsV1().Deployments(namespace.Name).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		if d, ok := e.Object.(*appsv1.Deployment); ok && d.Status.ReadyReplicas == 1 {
			return
		}
	}
	t.Errorf("the Deployment's pod is not Ready: %v", context.Cause(ctx))
}

// Custom resources are served when the tests begin.
func TestDefinitionsAreServed(t *testing.T) {
	client, err := dynamic.NewForConfig(plane.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "sites"}).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
