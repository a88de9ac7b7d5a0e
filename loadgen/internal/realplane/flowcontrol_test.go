package realplane

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const tenantLevel = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: test
background: [{kind: requests, verb: get, rate: 1/s, tenants: [{name: noisy}]}]
phases:
  - name: a
    for: 1s
    actions:
      - kind: create
        object:
          apiVersion: flowcontrol.apiserver.k8s.io/v1
          kind: PriorityLevelConfiguration
          metadata: {name: test-noisy}
          spec: {type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {type: Reject}}}
      - kind: create
        object:
          apiVersion: flowcontrol.apiserver.k8s.io/v1
          kind: FlowSchema
          metadata: {name: test-noisy}
          spec:
            matchingPrecedence: 1000
            priorityLevelConfiguration: {name: test-noisy}
            rules:
              - subjects: [{kind: User, user: {name: "stormglass:tenant:noisy"}}]
                resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"]}]
      - {kind: create, object: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: test-noisy}, value: 100}}
`

// Priority and fairness classifies requests by the impersonated tenant: a created FlowSchema matches the tenant's
// requests and no others. Its objects are removed with the run.
func TestCreatedFlowSchemaTakesTheTenant(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	theirs, s := targetOf(ctx, t, "r3", tenantLevel)
	defer func() {
		if err := theirs.Cleanup(context.WithoutCancel(ctx), nil); err != nil {
			t.Error(err)
		}
		admin, err := kubernetes.NewForConfig(theirs.Admin)
		must(t, err)
		_, err = admin.FlowcontrolV1().FlowSchemas().Get(ctx, "test-noisy", metav1.GetOptions{})
		_, levelErr := admin.FlowcontrolV1().PriorityLevelConfigurations().Get(ctx, "test-noisy", metav1.GetOptions{})
		_, classErr := admin.SchedulingV1().PriorityClasses().Get(ctx, "test-noisy", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) || !apierrors.IsNotFound(levelErr) || !apierrors.IsNotFound(classErr) {
			t.Errorf("left after the clean-up: %v, %v, %v", err, levelErr, classErr)
		}
	}()
	must(t, theirs.Setup(ctx))
	for _, m := range s.Manifests() {
		must(t, theirs.Create(ctx, m))
		must(t, theirs.Create(ctx, m)) // as if the first response was lost
	}
	admin, err := kubernetes.NewForConfig(theirs.Admin)
	must(t, err)
	made, err := admin.FlowcontrolV1().FlowSchemas().Get(ctx, "test-noisy", metav1.GetOptions{})
	must(t, err)
	for flowSchemaOf(ctx, t, theirs, scenario.TenantUser("noisy")) != string(made.UID) { // API servers notice new FlowSchemas by a watch
		if ctx.Err() != nil {
			t.Fatal("the tenant's requests are not of its FlowSchema")
		}
	}
	if flowSchemaOf(ctx, t, theirs, "") == string(made.UID) {
		t.Error("the load's own requests are of the tenant's FlowSchema")
	}
}

// An object that exists in the cluster is not replaced. The run is refused before it creates objects.
func TestCreateLeavesObjectsOfOthers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	theirs, _ := targetOf(ctx, t, "r4", strings.ReplaceAll(tenantLevel, "test-noisy", "test-theirs"))
	admin, err := kubernetes.NewForConfig(theirs.Admin)
	must(t, err)
	other, otherScenario := targetOf(ctx, t, "r5", strings.ReplaceAll(tenantLevel, "test-noisy", "test-theirs"))
	defer func() { must(t, other.Cleanup(context.WithoutCancel(ctx), nil)) }()
	must(t, other.Create(ctx, otherScenario.Manifests()[0]))
	err = theirs.Setup(ctx)
	if err == nil || !strings.Contains(err.Error(), `create PriorityLevelConfiguration test-theirs: `) || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("got %v", err)
	}
	must(t, theirs.Cleanup(ctx, nil))
	if _, err := admin.FlowcontrolV1().PriorityLevelConfigurations().Get(ctx, "test-theirs", metav1.GetOptions{}); err != nil {
		t.Errorf("another run's object: %v", err)
	}
	if _, err := admin.CoreV1().Namespaces().Get(ctx, theirs.Namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace of the refused run: %v", err)
	}
}

// targetOf returns the plane as a user's cluster for a run of a scenario.
func targetOf(ctx context.Context, t *testing.T, runID, text string) (*cluster.Target, *scenario.Scenario) {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text), nil)
	must(t, err)
	theirs, err := cluster.FromKubeconfig(ctx, cluster.Kubeconfig{Files: plane.Cluster().Kubeconfigs["admin"]}, runID, plan.Of(s), func(string) {})
	must(t, err)
	return theirs, s
}

// flowSchemaOf returns the UID of the FlowSchema for a request of the load, or of the user
// that it impersonates.
func flowSchemaOf(ctx context.Context, t *testing.T, theirs *cluster.Target, user string) string {
	t.Helper()
	cfg := rest.CopyConfig(theirs.Load)
	if user != "" {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{scenario.TenantsGroup}}
	}
	client, err := rest.HTTPClientFor(cfg)
	must(t, err)
	defer client.CloseIdleConnections()
	url := cfg.Host + "/api/v1/namespaces/" + theirs.Namespace + "/configmaps/none"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must(t, err)
	answer, err := client.Do(request)
	must(t, err)
	defer answer.Body.Close()
	uid := answer.Header.Get("X-Kubernetes-PF-FlowSchema-UID")
	if uid == "" {
		t.Fatalf("%s has no FlowSchema: %s", user, answer.Status)
	}
	return uid
}
