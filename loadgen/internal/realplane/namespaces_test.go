package realplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const groups = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: groups
namespaceLabels: {team: blue, tier: none}
namespaces:
  - {name: amber, count: 2, labels: {tier: one}, annotations: {note: x}}
  - {name: beta}
objects:
  - namespaceGroup: amber
    iterations: 3
    iterationsPerNamespace: 2
    templates: [{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{.Iteration}}"}, data: {in: "{{.Namespace}}"}}}]
  - namespaceGroup: beta
    templates:
      - {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c-0}}}
      - {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: placed, namespace: amber-1}}}
phases:
  - name: act
    for: 1s
    load:
      - kind: objects
        rate: 1/s
        namespaceGroup: beta
        templates:
          - object: {apiVersion: v1, kind: Secret, metadata: {name: s}}
          - object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: readers}}
          - object: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: reads}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: readers}}
    actions: [{kind: delete, target: {resource: configmaps, namespaceGroup: beta}}]
`

// The run creates the namespaces of groups with their labels, puts objects into them, and removes them. If one of the
// namespaces already exists, the run is refused before it creates anything.
func TestNamespaceGroups(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Cluster().Kubeconfigs["admin"])
	must(t, err)
	admin, err := kubernetes.NewForConfig(config)
	must(t, err)
	_, err = admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "taken-1"}}, metav1.CreateOptions{})
	must(t, err)
	s, err := scenario.Parse("test.yaml", []byte(strings.ReplaceAll(groups, "amber", "taken")), nil)
	must(t, err)
	_, err = cluster.FromKubeconfig(ctx, cluster.Kubeconfig{Files: plane.Cluster().Kubeconfigs["admin"]}, "n1", plan.Of(s), func(string) {})
	if err == nil || !strings.Contains(err.Error(), "namespace taken-1 of group taken already exists (rename the group in namespaces:, or delete the namespace)") {
		t.Errorf("a run with an existing namespace: %v", err)
	}

	theirs, s := targetOf(ctx, t, "n2", groups)
	created := func() (all []string) {
		list, err := admin.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: "stormglass.dev/run=n2"})
		must(t, err)
		for _, n := range list.Items {
			if n.DeletionTimestamp == nil {
				all = append(all, fmt.Sprint(n.Name, " ", n.Labels["team"], " ", n.Labels["tier"], " ", n.Annotations["note"]))
			}
		}
		return all
	}
	defer func() {
		must(t, theirs.Cleanup(context.WithoutCancel(ctx), nil))
		if left := created(); len(left) > 0 {
			t.Errorf("namespaces left after the clean-up: %v", left)
		}
		_, err := admin.CoreV1().Namespaces().Get(ctx, "taken-1", metav1.GetOptions{})
		must(t, err)
		must(t, admin.CoreV1().Namespaces().Delete(ctx, "taken-1", metav1.DeleteOptions{}))
	}()
	must(t, theirs.Setup(ctx))
	if got, want := created(), []string{"amber-0 blue one x", "amber-1 blue one x", "beta blue none ", "stormglass-n2 blue none "}; !slices.Equal(got, want) {
		t.Errorf("namespaces %q, want %q", got, want)
	}
	objects := func() (all []string) {
		list, err := admin.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: "stormglass.dev/run=n2"})
		must(t, err)
		for _, c := range list.Items {
			all = append(all, c.Namespace+"/"+c.Name+" "+c.Data["in"])
		}
		return all
	}
	want := []string{"amber-0/c-0 amber-0", "amber-0/c-1 amber-0", "amber-1/c-2 amber-1", "amber-1/placed ", "beta/c-0 "}
	if got := objects(); !slices.Equal(got, want) {
		t.Errorf("objects %q, want %q", got, want)
	}
	load, err := kubernetes.NewForConfig(theirs.Load)
	must(t, err)
	_, err = load.CoreV1().Secrets("beta").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
	must(t, err)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "readers", Labels: theirs.Labels}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods/log"}}}}
	_, err = load.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	must(t, err)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reads"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "readers"}}
	_, err = load.RbacV1().RoleBindings("beta").Create(ctx, binding, metav1.CreateOptions{})
	must(t, err)
	actor, err := theirs.Objects(nil)
	must(t, err)
	done, err := actor.Act(ctx, s.Phases[0].Actions[0])
	must(t, err)
	if got := objects(); done.Objects != 1 || !slices.Equal(got, want[:4]) {
		t.Errorf("the action deleted %s, and left %q", done, got)
	}
}
