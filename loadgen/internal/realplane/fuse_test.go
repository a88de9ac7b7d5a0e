package realplane

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
)

const small = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: test
setup: [{kind: create, object: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: test-owned}, value: 7}}]
background: [{kind: requests, verb: get, rate: 1/s, namespaces: 2}]
phases: [{name: a, for: 1s}]
`

func eventually(ctx context.Context, t *testing.T, what string, cond func() (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) { return cond() })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Deleting the run's first namespace also removes the cluster-scoped objects that it owns, even if no process cleans
// up.
func TestNamespaceOwnsWhatIsInNone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	theirs, _ := targetOf(ctx, t, "r11", small)
	defer func() { must(t, theirs.Cleanup(context.WithoutCancel(ctx), nil)) }()
	must(t, theirs.Setup(ctx))
	admin, err := kubernetes.NewForConfig(theirs.Admin)
	must(t, err)
	namespaces := admin.CoreV1().Namespaces()
	owner, err := namespaces.Get(ctx, "stormglass-r11", metav1.GetOptions{})
	must(t, err)
	deadline, err := time.Parse(time.RFC3339, owner.Annotations[cluster.DeadlineAnnotation])
	if err != nil || time.Until(deadline) < 10*time.Minute || time.Until(deadline) > 20*time.Minute {
		t.Errorf("the deadline is %s: %v", owner.Annotations[cluster.DeadlineAnnotation], err)
	}
	must(t, namespaces.Delete(ctx, owner.Name, metav1.DeleteOptions{}))
	gone := map[string]func() error{
		"second namespace": func() error {
			_, err := namespaces.Get(ctx, "stormglass-r11-requests-1", metav1.GetOptions{})
			return err
		},
		"ClusterRole": func() error {
			_, err := admin.RbacV1().ClusterRoles().Get(ctx, owner.Name, metav1.GetOptions{})
			return err
		},
		"ClusterRoleBinding": func() error {
			_, err := admin.RbacV1().ClusterRoleBindings().Get(ctx, owner.Name, metav1.GetOptions{})
			return err
		},
		"PriorityClass": func() error {
			_, err := admin.SchedulingV1().PriorityClasses().Get(ctx, "test-owned", metav1.GetOptions{})
			return err
		},
	}
	for what, get := range gone {
		eventually(ctx, t, what+" goes with its owner", func() (bool, error) {
			err := get()
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
	}
}

// A Job with only the rights of its manifest removes an expired run in its cluster, and then itself.
func TestJobRemovesExpiredRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	theirs, _ := targetOf(ctx, t, "r12", small)
	defer func() { must(t, theirs.Cleanup(context.WithoutCancel(ctx), nil)) }()
	must(t, theirs.Setup(ctx))
	must(t, theirs.MakeCleanupJob(ctx, "registry.example.com/loadgen:v1"))
	admin, err := kubernetes.NewForConfig(theirs.Admin)
	must(t, err)
	const namespace, account = "stormglass-r12-cleanup", "stormglass-cleanup"
	eventually(ctx, t, "Pod Security admits the Job's pod", func() (bool, error) {
		pods, err := admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1, err
	})
	token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	job := rest.AnonymousClientConfig(theirs.Admin)
	job.BearerToken = token.Status.Token

	state := func() cluster.Trace {
		all, err := cluster.Traces(ctx, job)
		must(t, err)
		i := slices.IndexFunc(all, func(x cluster.Trace) bool { return x.Run == "r12" })
		if i < 0 {
			t.Fatalf("the run is not found: %+v", all)
		}
		return all[i]
	}
	if x := state(); x.Expired {
		t.Errorf("a run under way is taken for one that is over: %s", x.Why)
	}
	past := `{"metadata":{"annotations":{"` + cluster.DeadlineAnnotation + `":"2026-01-01T00:00:00Z"}}}`
	_, err = admin.CoreV1().Namespaces().Patch(ctx, "stormglass-r12", types.MergePatchType, []byte(past), metav1.PatchOptions{})
	must(t, err)
	if x := state(); !x.Expired || !strings.Contains(x.Why, "its deadline passed") {
		t.Errorf("past its deadline: %+v", x)
	}
	removed, err := cluster.Cleanup(ctx, job, cluster.Leftovers{Run: "r12"}, func(string) {}) // its own namespace is the last
	if err != nil || removed.Namespaces != 3 {                                                // the garbage collector may remove the rest first
		t.Errorf("%s, %v", removed, err)
	}
	eventually(ctx, t, "the Job's RBAC goes with its namespace", func() (bool, error) {
		_, roles := admin.RbacV1().ClusterRoles().Get(ctx, namespace, metav1.GetOptions{})
		_, bindings := admin.RbacV1().RoleBindings("kube-node-lease").Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(roles) && apierrors.IsNotFound(bindings), nil
	})
}

func TestRunsDoNotMeet(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	first, _ := targetOf(ctx, t, "r13", small)
	second, _ := targetOf(ctx, t, "r14", small)
	held, err := first.Lock(ctx, cluster.LockOptions{Scenario: "one"})
	must(t, err)
	var by *cluster.HeldError
	if _, err := second.Lock(ctx, cluster.LockOptions{Scenario: "two"}); !errors.As(err, &by) || by.Run != "r13" {
		t.Errorf("locked during another run: %v", err)
	}
	must(t, held.Release(ctx))
	next, err := second.Lock(ctx, cluster.LockOptions{Scenario: "two"})
	must(t, err)
	must(t, next.Release(ctx))
}
