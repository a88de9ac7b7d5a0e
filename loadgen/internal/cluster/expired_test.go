package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// remains returns the objects of runs in every state.
func remains(now time.Time) []runtime.Object {
	namespace := func(run, name, deadline string) *corev1.Namespace {
		n := &corev1.Namespace{ObjectMeta: named("", name, run)}
		if deadline != "" {
			n.Annotations = map[string]string{DeadlineAnnotation: deadline}
		}
		return n
	}
	at := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339) }
	lock := &coordinationv1.Lease{ObjectMeta: named(lockNamespace, lockName, "locked")}
	renewed := metav1.NewMicroTime(now.Add(-10 * time.Second))
	lock.Spec.RenewTime = &renewed
	return []runtime.Object{
		namespace("past", "stormglass-past", at(-time.Minute)),
		namespace("alive", "stormglass-alive", at(time.Minute)), namespace("alive", "stormglass-alive-1", ""),
		namespace("old", "stormglass-old", ""),
		namespace("odd", "stormglass-odd", "tomorrow"),
		namespace("second", "stormglass-second-1", ""),
		&corev1.Node{ObjectMeta: named("", "sg-orphan-1", "orphan")}, &corev1.Node{ObjectMeta: named("", "sg-alive-1", "alive")},
		&corev1.Node{ObjectMeta: named("", "theirs", "")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named("", "stormglass-bound", "bound")},
		lock, namespace("locked", "stormglass-locked", at(-time.Hour)),
	}
}

func TestRunsPastTheirDeadlineAreOver(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	all, err := traces(t.Context(), fake.NewClientset(remains(now)...), now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range all {
		got = append(got, map[bool]string{true: "over ", false: "stays "}[x.Expired]+x.Run+": "+x.Why)
	}
	want := []string{
		"stays alive: its deadline is in 1m0s",
		"over bound: its namespace stormglass-bound is gone",
		"stays locked: it still runs, because it renews the cluster's lock",
		"stays odd: its deadline \"tomorrow\" is not a valid time (remove it with `loadgen cleanup --run ID`)",
		"stays old: it has no deadline (remove it with `loadgen cleanup --run ID`)",
		"over orphan: its namespace stormglass-orphan is gone",
		"over past: its deadline passed 1m0s ago",
		"over second: its namespace stormglass-second is gone",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Traces returns an error if the user may not list namespaces. If the user may not list nodes, it returns what the
// other kinds show.
func TestExpiredNeedsNamespaces(t *testing.T) {
	now := time.Now()
	refuse := func(resource string) *fake.Clientset {
		c := fake.NewClientset(remains(now)...)
		c.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
		})
		return c
	}
	if _, err := traces(t.Context(), refuse("namespaces"), now); err == nil {
		t.Error("no error, although the user may not list namespaces")
	}
	all, err := traces(t.Context(), refuse("nodes"), now)
	if err != nil || len(all) != 7 {
		t.Errorf("%d runs, %v", len(all), err)
	}
}
