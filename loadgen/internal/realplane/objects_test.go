package realplane

import (
	"context"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const shop = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: test
objects:
  - namespaces: 2
    templates:
      - object: {apiVersion: test.stormglass.dev/v1, kind: Basket, metadata: {name: "b-{{.Iteration}}"}, spec: {n: 1}}
      - object:
          apiVersion: apiextensions.k8s.io/v1
          kind: CustomResourceDefinition
          metadata: {name: "baskets.test.stormglass.dev"}
          spec:
            group: test.stormglass.dev
            scope: Namespaced
            names: {plural: baskets, kind: Basket}
            versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
phases:
  - name: make
    for: 10s
    actions:
      - kind: create
        namespaces: 2
        templates:
          - replicas: 5
            text: |
              apiVersion: v1
              kind: Pod
              metadata: {name: "p-{{.Replica}}", labels: {app: shop}}
              spec: {containers: [{name: c, image: none}]}
          - text: |
              apiVersion: apps/v1
              kind: Deployment
              metadata: {name: web}
              spec:
                replicas: 0
                selector: {matchLabels: {app: web}}
                template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: none}]}}
          - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
      - {kind: patch, target: {resource: pods, names: [p-1]}, patch: {metadata: {annotations: {at: "{{.Namespace}}/{{.Name}} {{.Index}}"}}}}
      - {kind: patch, target: {resource: baskets.test.stormglass.dev}, patchType: json, patch: [{op: replace, path: /spec/n, value: 7}]}
      - {kind: patch, target: {resource: deployments.apps}, subresource: status, patch: {status: {replicas: 3}}}
      - {kind: scale, target: {resource: deployments.apps}, replicas: 2}
      - {kind: restart, target: {resource: deployments.apps}}
      - {kind: evict, target: {resource: pods, labelSelector: app=shop, share: 50%}}
      - {kind: delete, target: {resource: pods, labelSelector: app=shop, share: 20%}}
      - {kind: delete, target: {resource: configmaps}, collection: true}
      - kind: create
        onlyMissing: true
        namespaces: 2
        templates: [{replicas: 5, object: {apiVersion: v1, kind: Pod, metadata: {name: "p-{{.Replica}}", labels: {app: shop}}, spec: {containers: [{name: c, image: none}]}}}]
      - kind: apply
        templates: [{object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: test-theirs}, rules: []}}]
`

// Objects of any kind are created from templates in order, definitions first. Actions change only the objects that they
// select, and objects of others stay unchanged. No object of the run is left.
func TestObjectsFromTemplates(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	theirs, s := targetOf(ctx, t, "r8", shop)
	admin, err := kubernetes.NewForConfig(theirs.Admin)
	must(t, err)
	defer func() {
		must(t, theirs.Cleanup(context.WithoutCancel(ctx), nil))
		list, err := admin.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{LabelSelector: "stormglass.dev/run=r8"})
		must(t, err)
		if len(list.Items) > 0 {
			t.Errorf("%d cluster roles still exist", len(list.Items))
		}
		must(t, admin.RbacV1().ClusterRoles().Delete(ctx, "test-theirs", metav1.DeleteOptions{}))
	}()
	_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-theirs"}}, metav1.CreateOptions{})
	must(t, err)
	must(t, theirs.Setup(ctx))
	actor, err := theirs.Objects(nil)
	must(t, err)
	var did []string
	for i := range s.Phases[0].Actions {
		a := s.Phases[0].Actions[i]
		if !a.Has() {
			done, err := actor.Act(ctx, a)
			if err != nil {
				t.Errorf("%s: %v", a.Kind, err)
			}
			did = append(did, a.Kind+": "+done.String())
			continue
		}
		all, err := s.Expand(scenario.PlacedBatch{Batch: &a.Batch, Name: "make", Path: "make"})
		must(t, err)
		made, err := actor.Make(ctx, all, a)
		if a.Kind == "apply" {
			if err == nil || !strings.Contains(err.Error(), "apply ClusterRole test-theirs: the cluster already has an object with this name, but this run did not create it") {
				t.Errorf("apply over another's object: %v", err)
			}
			continue
		}
		must(t, err)
		did = append(did, a.Kind+": "+all.String()+": "+strings.Repeat("+", made))
	}
	want := []string{
		"create: 10 Pod, 2 Deployment, 2 ConfigMap: ++++++++++++++", "patch: 2 objects", "patch: 2 objects", "patch: 2 objects", "scale: 2 objects", "restart: 2 objects",
		"evict: 5 objects", "delete: 1 objects", "delete: 2 objects", "create: 10 Pod: ++++++",
	}
	for i := range want {
		if !strings.HasPrefix(did[i], want[i]) {
			t.Errorf("%q, want %q", did[i], want[i])
		}
	}
	replicas := 2
	_, err = actor.Act(ctx, scenario.Action{Kind: "scale", Target: scenario.Selection{Resource: "baskets.test.stormglass.dev"}, Replicas: replicas})
	if err == nil || !strings.Contains(err.Error(), "the API server does not serve its subresource scale") {
		t.Errorf("objects without the requested subresource: %v", err)
	}
	pod, err := admin.CoreV1().Pods(theirs.Namespace+"-1").Get(ctx, "p-5", metav1.GetOptions{})
	must(t, err)
	if pod.Labels["stormglass.dev/run"] != "r8" || pod.Spec.NodeSelector != nil {
		t.Errorf("pod %v, placed by %v without simulated nodes", pod.Labels, pod.Spec.NodeSelector)
	}
	web, err := admin.AppsV1().Deployments(theirs.Namespace).Get(ctx, "web", metav1.GetOptions{})
	must(t, err)
	if *web.Spec.Replicas != 2 || web.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Errorf("deployment of %d replicas, template annotated %v", *web.Spec.Replicas, web.Spec.Template.Annotations)
	}
	objects, err := dynamic.NewForConfig(theirs.Admin)
	must(t, err)
	basket, err := objects.Resource(schema.GroupVersionResource{Group: "test.stormglass.dev", Version: "v1", Resource: "baskets"}).
		Namespace(theirs.Namespace+"-1").Get(ctx, "b-1", metav1.GetOptions{})
	must(t, err)
	if n := basket.Object["spec"].(map[string]any)["n"]; n != int64(7) {
		t.Errorf("the custom resource has n %v", n)
	}
}

// A manifest that the API server can never accept is an error in the scenario, not a failure of the cluster.
func TestUnknownFieldOfAnObject(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	theirs, _ := targetOf(ctx, t, "r9", `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: test
objects: [{templates: [{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, datta: {}}}]}]
phases: [{name: wait, for: 1s}]
`)
	defer func() { must(t, theirs.Cleanup(context.WithoutCancel(ctx), nil)) }()
	err := theirs.Setup(ctx)
	if err == nil || !exitcode.IsUsage(err) || !strings.Contains(err.Error(), `unknown field "datta"`) {
		t.Errorf("setup: %v, want a usage error about datta", err)
	}
}
