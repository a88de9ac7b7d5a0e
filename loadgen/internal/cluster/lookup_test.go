package cluster

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

const madeHere = `
objects:
  - templates:
      - object:
          apiVersion: apiextensions.k8s.io/v1
          kind: CustomResourceDefinition
          metadata: {name: databases.example.com}
          spec: {group: example.com, scope: Cluster, names: {kind: Database, plural: databases, singular: database}}
      - object:
          apiVersion: apiextensions.k8s.io/v1
          kind: CustomResourceDefinition
          metadata: {name: tables.example.com}
          spec: {group: example.com, scope: Namespaced, names: {kind: Table, plural: tables, singular: table}}
phases:
  - name: fill
    until: {resource: tables.example.com, count: 2, jsonpath: '{.spec.ready}=true'}
    within: 1m
    load:
      - kind: objects
        rate: 10/s
        iterations: 2
        templates:
          - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{.Iteration}}"}}
          - object: {apiVersion: example.com/v1, kind: Database, metadata: {name: "d-{{.Iteration}}"}}
          - object: {apiVersion: example.com/v1, kind: Table, metadata: {name: "t-{{.Iteration}}"}}
          - object: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "b-{{.Iteration}}"}}
          - object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "r-{{.Iteration}}"}}
    actions:
      - {kind: apply, templates: [{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: applied}}}]}
      - {kind: delete, target: {resource: databases.example.com}}
`

// The load's identity may only create the objects of its batches. To create roles and bindings, it needs escalate and
// bind. Custom resources that the run itself defines are known before the API server serves them.
func TestRightsOfBatches(t *testing.T) {
	client := fake.NewClientset()
	client.Resources = []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}}},
		{GroupVersion: "apiextensions.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}}},
		{GroupVersion: "rbac.authorization.k8s.io/v1", APIResources: []metav1.APIResource{
			{Name: "rolebindings", Kind: "RoleBinding", Namespaced: true}, {Name: "clusterroles", Kind: "ClusterRole"},
		}},
	}
	s := parsed(t, madeHere)
	look := newLookup(client.Discovery(), s)
	load, err := loadNeeds(look, "ns")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range load {
		if n.group == "example.com" || n.resource == "customresourcedefinitions" || n.group == rbacv1.GroupName {
			got = append(got, n.String())
		}
	}
	want := []string{
		"create databases.example.com", "create tables.example.com in namespace ns",
		"create rolebindings.rbac.authorization.k8s.io in namespace ns", "create clusterroles.rbac.authorization.k8s.io",
		"bind roles.rbac.authorization.k8s.io in namespace ns", "bind clusterroles.rbac.authorization.k8s.io in namespace ns",
		"escalate clusterroles.rbac.authorization.k8s.io",
		"list tables.example.com in namespace ns", "watch tables.example.com in namespace ns",
	}
	if !slices.Equal(got, want) {
		t.Errorf("load:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	user, err := batchNeeds(look, "ns")
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, n := range user {
		got = append(got, n.String())
	}
	for _, want := range []string{
		"create customresourcedefinitions.apiextensions.k8s.io", "delete customresourcedefinitions.apiextensions.k8s.io",
		"create databases.example.com", "list databases.example.com", "delete databases.example.com",
		"create configmaps in namespace ns", "patch configmaps in namespace ns",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("the user's permissions do not include %q:\n%s", want, strings.Join(got, "\n"))
		}
	}
	if slices.Contains(got, "patch tables.example.com in namespace ns") || slices.Contains(got, "delete tables.example.com in namespace ns") {
		t.Errorf("the user's permissions include unneeded ones:\n%s", strings.Join(got, "\n"))
	}
	asked := 0
	for _, a := range client.Actions() {
		if a.GetVerb() == "get" && a.GetResource().Resource == "group" {
			asked++
		}
	}
	if asked > 1 {
		t.Errorf("%d discovery requests, want 1", asked)
	}
}
