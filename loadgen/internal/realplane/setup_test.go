package realplane

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
)

const judged = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: test
namespaceLabels: {pod-security.kubernetes.io/enforce: restricted}
setup:
  - kind: create
    object:
      apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      metadata: {name: gauges.test.stormglass.dev}
      spec:
        group: test.stormglass.dev
        scope: Namespaced
        names: {plural: gauges, singular: gauge, kind: Gauge, listKind: GaugeList}
        versions:
          - name: v1
            served: true
            storage: true
            schema:
              openAPIV3Schema:
                type: object
                properties:
                  spec:
                    type: object
                    properties:
                      low: {type: integer, default: 1}
                      high: {type: integer}
                    x-kubernetes-validations: [{rule: self.low <= self.high, message: low is over high}]
  - kind: create
    object: {apiVersion: v1, kind: ResourceQuota, metadata: {name: leases}, spec: {hard: {count/leases.coordination.k8s.io: "0"}}}
  - kind: create
    object:
      apiVersion: v1
      kind: LimitRange
      metadata: {name: small}
      spec: {limits: [{type: Container, defaultRequest: {cpu: 10m}}]}
  - kind: create
    object:
      apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: test-owned}
      spec:
        matchConstraints:
          resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]
        validations: [{expression: "has(object.metadata.annotations) && 'owner' in object.metadata.annotations", message: no owner}]
  - kind: create
    object:
      apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicyBinding
      metadata: {name: test-owned}
      spec: {policyName: test-owned, validationActions: [Deny]}
  - kind: create
    object:
      apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingAdmissionPolicy
      metadata: {name: test-owner}
      spec:
        matchConstraints:
          resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
        reinvocationPolicy: Never
        mutations:
          - patchType: ApplyConfiguration
            applyConfiguration: {expression: 'Object{metadata: Object.metadata{annotations: {"owner": "policy"}}}'}
  - kind: create
    object:
      apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingAdmissionPolicyBinding
      metadata: {name: test-owner}
      spec: {policyName: test-owner}
phases:
  - name: flood
    until: resourcesServed
    within: 1m
    actions:
      - kind: create
        count: 3
        object:
          apiVersion: apiextensions.k8s.io/v1
          kind: CustomResourceDefinition
          metadata: {name: "floods{i}.test.stormglass.dev"}
          spec:
            group: test.stormglass.dev
            scope: Namespaced
            names: {plural: "floods{i}", kind: "Flood{i}"}
            versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
background: [{kind: requests, verb: get, rate: 1/s}]
`

// The setup objects apply only to requests in the run's namespaces, and are removed with the run.
func TestSetupJudgesTheRunsNamespaces(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	theirs, s := targetOf(ctx, t, "r6", judged)
	admin, err := kubernetes.NewForConfig(theirs.Admin)
	must(t, err)
	defer func() {
		must(t, theirs.Cleanup(context.WithoutCancel(ctx), nil))
		left, err := metadata.NewForConfig(theirs.Admin)
		must(t, err)
		for _, m := range s.Manifests() {
			list, err := left.Resource(m.Resource).List(ctx, metav1.ListOptions{LabelSelector: "stormglass.dev/run=r6"})
			must(t, err)
			for _, o := range list.Items {
				if o.DeletionTimestamp == nil {
					t.Errorf("left after the clean-up: %s %s", m.Kind, o.Name)
				}
			}
		}
	}()
	must(t, theirs.Setup(ctx))
	for _, m := range s.Phases[0].Manifests() {
		for _, one := range m.Objects() {
			must(t, theirs.Create(ctx, one))
		}
	}
	must(t, theirs.AwaitServed(ctx, s.Manifests()))

	objects, err := dynamic.NewForConfig(theirs.Admin)
	must(t, err)
	gauges := objects.Resource(schema.GroupVersionResource{Group: "test.stormglass.dev", Version: "v1", Resource: "gauges"}).Namespace(theirs.Namespace)
	gauge := func(high int64) error {
		made, err := gauges.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "test.stormglass.dev/v1", "kind": "Gauge", "metadata": map[string]any{"generateName": "g-"}, "spec": map[string]any{"high": high},
		}}, metav1.CreateOptions{})
		if err == nil {
			if low, _, _ := unstructured.NestedInt64(made.Object, "spec", "low"); low != 1 {
				t.Errorf("the default value of low is %d", low)
			}
		}
		return err
	}
	must(t, gauge(2))
	wantRefused(t, gauge(0), "low is over high")
	_, err = admin.CoordinationV1().Leases(theirs.Namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	wantRefused(t, err, "exceeded quota: leases")

	create := func(namespace string) error {
		_, err := admin.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	mutated := func(namespace string) bool {
		made, err := admin.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		must(t, err)
		return made.Annotations["owner"] == "policy"
	}
	for create(theirs.Namespace) == nil || !mutated(theirs.Namespace) { // policies become active by a watch
		if ctx.Err() != nil {
			t.Fatal("the policies are not active")
		}
	}
	wantRefused(t, create(theirs.Namespace), "no owner")
	must(t, create(metav1.NamespaceDefault))
	if mutated(metav1.NamespaceDefault) {
		t.Error("the policy changes objects of another namespace")
	}

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "root"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
	_, err = admin.CoreV1().Pods(theirs.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	wantRefused(t, err, `violates PodSecurity "restricted`)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	made, err := admin.CoreV1().Pods(theirs.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	must(t, err)
	if asked := made.Spec.Containers[0].Resources.Requests.Cpu().String(); asked != "10m" {
		t.Errorf("the limit range sets the request to %s", asked)
	}
}

func wantRefused(t *testing.T, err error, why string) {
	t.Helper()
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), why) {
		t.Errorf("got %v, want %q", err, why)
	}
}
