package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/objects"
)

func named(namespace, name, runID string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}
	if runID != "" {
		m.Labels = Labels(runID)
	}
	return m
}

// inhabited returns a cluster with the objects of two runs, and with objects of other users that look similar.
func inhabited() *fake.Clientset {
	lookalike := named("", "their-node", "")
	lookalike.Labels = map[string]string{"stormglass.example/run": "r1", ManagedByLabel: "stormglass"}
	lease := func(name, owner string) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: named(leaseNamespace, name, "")}
		l.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: owner, UID: types.UID("uid-" + owner)}}
		return l
	}
	csi := func(name, owner string) *storagev1.CSINode {
		n := &storagev1.CSINode{ObjectMeta: named("", name, "")}
		n.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: owner, UID: types.UID("uid-" + owner)}}
		return n
	}
	pod := func(namespace, name, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: named(namespace, name, ""),
			Spec:       corev1.PodSpec{NodeName: node, NodeSelector: map[string]string{RunLabel: "r1"}},
		}
	}
	daemon := pod("kube-system", "daemon-on-ours", "sg-1")
	theirs := pod("kube-system", "daemon-on-theirs", "their-node")
	daemon.Spec.NodeSelector, theirs.Spec.NodeSelector = nil, nil
	c := fake.NewClientset(
		&corev1.Namespace{ObjectMeta: named("", "stormglass-r1", "r1")},
		&corev1.Namespace{ObjectMeta: named("", "stormglass-r2", "r2")},
		&corev1.Namespace{ObjectMeta: named("", "default", "")},
		&corev1.Node{ObjectMeta: named("", "sg-1", "r1")},
		&corev1.Node{ObjectMeta: named("", "sg-2", "r2")},
		&corev1.Node{ObjectMeta: lookalike},
		&corev1.Event{ObjectMeta: named("default", "event-of-sg-1", "r1")},
		&corev1.Event{ObjectMeta: named("default", "event-of-theirs", "")},
		pod("stormglass-r1", "stuck", "sg-1"), daemon, theirs,
		lease("sg-1", "sg-1"), lease("their-node", "their-node"), csi("sg-1", "sg-1"), csi("their-node", "their-node"),
		&resourcev1.ResourceSlice{ObjectMeta: named("", "slice-r1", "r1")},
		&resourcev1.ResourceSlice{ObjectMeta: named("", "slice-theirs", "")},
		&resourcev1.DeviceClass{ObjectMeta: named("", "stormglass-r1", "r1")},
		&resourcev1.DeviceClass{ObjectMeta: named("", "class-theirs", "")},
		&certificatesv1.CertificateSigningRequest{ObjectMeta: named("", "csr-r1", "r1")},
		&certificatesv1.CertificateSigningRequest{ObjectMeta: named("", "csr-theirs", "")},
		&rbacv1.ClusterRole{ObjectMeta: named("", "stormglass-r1", "r1")},
		&rbacv1.ClusterRole{ObjectMeta: named("", "cluster-admin", "")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named("", "stormglass-r1", "r1")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named("", "cluster-admin", "")},
	)
	// The fake client ignores deletecollection requests.
	c.PrependReactor("delete-collection", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		selector := a.(clienttesting.DeleteCollectionActionImpl).ListRestrictions.Labels
		gvr := a.GetResource()
		list, err := c.Tracker().List(gvr, gvr.GroupVersion().WithKind("Event"), a.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		for _, e := range list.(*corev1.EventList).Items {
			if selector.Matches(labels.Set(e.Labels)) {
				err = errors.Join(err, c.Tracker().Delete(gvr, e.Namespace, e.Name))
			}
		}
		return true, nil, err
	})
	return c
}

// present lists the existing objects as "resource name", sorted.
func present(t *testing.T, c *fake.Clientset) []string {
	t.Helper()
	var out []string
	for _, k := range []struct {
		gvr  schema.GroupVersionResource
		kind string
	}{
		{corev1.SchemeGroupVersion.WithResource("namespaces"), "Namespace"},
		{corev1.SchemeGroupVersion.WithResource("nodes"), "Node"},
		{corev1.SchemeGroupVersion.WithResource("pods"), "Pod"},
		{corev1.SchemeGroupVersion.WithResource("events"), "Event"},
		{coordinationv1.SchemeGroupVersion.WithResource("leases"), "Lease"},
		{storagev1.SchemeGroupVersion.WithResource("csinodes"), "CSINode"},
		{resourcev1.SchemeGroupVersion.WithResource("resourceslices"), "ResourceSlice"},
		{resourcev1.SchemeGroupVersion.WithResource("deviceclasses"), "DeviceClass"},
		{certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), "CertificateSigningRequest"},
		{rbacv1.SchemeGroupVersion.WithResource("clusterroles"), "ClusterRole"},
		{rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), "ClusterRoleBinding"},
	} {
		list, err := c.Tracker().List(k.gvr, k.gvr.GroupVersion().WithKind(k.kind), "")
		if err != nil {
			t.Fatal(err)
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			m, err := meta.Accessor(o)
			out = append(out, k.gvr.Resource+" "+m.GetName())
			return err
		})
	}
	slices.Sort(out)
	return out
}

// A cleanup of all runs keeps the objects of the runs in Leftovers.Keep.
func TestCleanupKeepsRunsThatItIsTold(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: named("", "without-label", "")}
	role.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: objects.Creator(Labels("r1"))}}
	client := inhabited()
	job := &corev1.Namespace{ObjectMeta: named("", "job-of-r1", "")}
	job.Labels = map[string]string{cleanupLabel: "r1"}
	lock := &coordinationv1.Lease{ObjectMeta: named(lockNamespace, lockName, "r1")}
	for _, o := range []runtime.Object{role, job, lock} {
		if err := client.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	before := present(t, client)
	c := cleanerOf(client, "")
	c.devices, c.locks, c.jobs = true, true, true
	c.except([]string{"r0", "r1"})
	if err := c.attempt(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(before, func(o string) bool { return o == "namespaces stormglass-r2" || o == "nodes sg-2" })
	if after := present(t, client); !slices.Equal(after, want) {
		t.Errorf("left\n%q\nwant\n%q", after, want)
	}
}

// attempt makes one attempt of a cleanup.
func attempt(ctx context.Context, client *fake.Clientset, runID string, log func(string)) (Removed, error) {
	c := cleanerOf(client, runID)
	c.devices = true
	c.log = log
	err := c.attempt(ctx)
	return c.removed, err
}

func TestCleanupRemovesOnlyTheNamedRun(t *testing.T) {
	c := inhabited()
	before := present(t, c)
	var log []string
	removed, err := attempt(t.Context(), c, "r1", func(line string) { log = append(log, line) })
	if err != nil {
		t.Fatal(err)
	}
	after := present(t, c)
	var gone []string
	for _, o := range before {
		if !slices.Contains(after, o) {
			gone = append(gone, o)
		}
	}
	want := "certificatesigningrequests csr-r1, clusterrolebindings stormglass-r1, clusterroles stormglass-r1, csinodes sg-1, deviceclasses stormglass-r1, events event-of-sg-1, leases sg-1, " +
		"namespaces stormglass-r1, nodes sg-1, pods daemon-on-ours, pods stuck, resourceslices slice-r1"
	if got := strings.Join(gone, ", "); got != want {
		t.Errorf("removed %s\nwant    %s", got, want)
	}
	if got := removed.String(); got != "removed 1 namespace, 2 pods, 1 node, 1 lease, 1 CSINode, 1 ResourceSlice, 1 event, 1 certificate request, 2 RBAC objects, 1 cluster object" {
		t.Error(got)
	}
	if len(log) != 11 || log[0] != "deleting 1 namespace: stormglass-r1" {
		t.Errorf("unexpected log:\n%s", strings.Join(log, "\n"))
	}
	again, err := attempt(t.Context(), c, "r1", func(string) {})
	if err != nil || again.String() != "nothing to remove" {
		t.Errorf("the second attempt: %s, %v; want nothing to remove", again, err)
	}
}

func TestCleanupOfEveryRun(t *testing.T) {
	c := inhabited()
	if _, err := attempt(t.Context(), c, "", func(string) {}); err != nil {
		t.Fatal(err)
	}
	for _, o := range present(t, c) {
		if strings.Contains(o, "r1") || strings.Contains(o, "r2") || strings.Contains(o, "sg-") {
			t.Errorf("left: %s", o)
		}
	}
}

// A real API server keeps a bound pod until its kubelet has stopped it, and a namespace until its pods are gone. If the
// cleanup did not force-delete the pods, it would wait forever.
func TestCleanupForcesPodsThatHoldTheNamespace(t *testing.T) {
	c := inhabited()
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	c.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, nil // the API server accepts the request; the deletion takes some time
	})
	c.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		o := a.(clienttesting.DeleteActionImpl).DeleteOptions
		if o.GracePeriodSeconds == nil || *o.GracePeriodSeconds != 0 {
			return true, nil, nil
		}
		if a.GetNamespace() == "stormglass-r1" {
			err := c.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("namespaces"), "", "stormglass-r1")
			if err != nil {
				return true, nil, err
			}
		}
		return true, nil, c.Tracker().Delete(pods, a.GetNamespace(), a.(clienttesting.DeleteActionImpl).Name)
	})
	removed, err := attempt(t.Context(), c, "r1", func(string) {})
	if err != nil || removed.Pods != 2 {
		t.Errorf("%v, %v", removed, err)
	}
}

func TestCleanupGoesOnPastAnError(t *testing.T) {
	c := inhabited()
	c.PrependReactor("delete", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, fmt.Errorf("the webhook says no")
	})
	_, err := attempt(t.Context(), c, "r1", func(string) {})
	if err == nil || !strings.Contains(err.Error(), "delete node sg-1: the webhook says no") {
		t.Errorf("got %v", err)
	}
	if left := strings.Join(present(t, c), " "); strings.Contains(left, "clusterroles stormglass-r1") {
		t.Errorf("the cleanup did not remove all other objects: %s", left)
	}
}

// One object that cannot be deleted does not prevent the deletion of others of its kind.
func TestCleanupContinuesPastRefusedDelete(t *testing.T) {
	var nodes []runtime.Object
	for i := range 5 * load.AtOnce {
		nodes = append(nodes, &corev1.Node{ObjectMeta: named("", fmt.Sprintf("sg-%02d", i), "r1")})
	}
	c := fake.NewClientset(nodes...)
	c.PrependReactor("delete", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if name := a.(clienttesting.DeleteAction).GetName(); name == "sg-00" || name == "sg-01" {
			return true, nil, fmt.Errorf("the webhook says no")
		}
		return false, nil, nil
	})
	removed, err := attempt(t.Context(), c, "r1", func(string) {})
	if err == nil || !strings.Contains(err.Error(), "delete node sg-00: the webhook says no (and 1 more)") {
		t.Errorf("got %v", err)
	}
	left, listErr := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if listErr != nil || len(left.Items) != 2 || removed.Nodes != len(nodes)-2 {
		t.Errorf("%d nodes left, want 2; %d nodes reported as removed, %v", len(left.Items), removed.Nodes, listErr)
	}
}

func TestCleanupWithoutRightsToNodesIsANote(t *testing.T) {
	c := inhabited()
	c.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", fmt.Errorf("no"))
	})
	var log []string
	if _, err := attempt(t.Context(), c, "r1", func(line string) { log = append(log, line) }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(log, "\n"), "no permission to list nodes") {
		t.Errorf("log: %v", log)
	}
}

func TestCleanupExplainsTerminatingNamespace(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: named("", "stormglass-r1", "r1")}
	ns.Status.Conditions = []corev1.NamespaceCondition{{
		Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "pods. has 3 resource instances",
	}}
	c := fake.NewClientset(ns)
	ctx, cancel := context.WithCancel(t.Context())
	c.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, nil // a finalizer keeps it
	})
	c.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel()
		return false, nil, nil
	})
	_, err := attempt(ctx, c, "r1", func(string) {})
	if err == nil || !strings.Contains(err.Error(), "stormglass-r1: pods. has 3 resource instances") {
		t.Errorf("got %v", err)
	}
}

func TestPreviewRemovesNothing(t *testing.T) {
	client := inhabited()
	before := present(t, client)
	c := cleanerOf(client, "r1")
	c.devices, c.removed.DryRun = true, true
	var lines []string
	c.log = func(line string) { lines = append(lines, line) }
	if err := c.attempt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := present(t, client); !slices.Equal(before, after) {
		t.Errorf("before\n%q\nafter\n%q", before, after)
	}
	removed, err := attempt(t.Context(), client, "r1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "would " + strings.Replace(removed.String(), "removed", "remove", 1); c.removed.String() != want {
		t.Errorf("the dry run reports %q, want %q\n%s", c.removed, want, strings.Join(lines, "\n"))
	}
}

// An object without the run's label belongs to the run only if its managedFields say that the run created it. An object
// that the run only changed does not belong to it.
func TestCreatedObjectsAreRecognized(t *testing.T) {
	created := objects.Creator(Labels("r1"))
	for name, c := range map[string]struct {
		label, manager string
		ofRun, ofAny   bool
	}{
		"labelled":                  {"r1", "", true, true},
		"lost its label":            {"", created, true, true},
		"labelled by another run":   {"r2", created, true, true},
		"of another run":            {"r2", objects.Creator(Labels("r2")), false, true},
		"of a run with a longer id": {"", created + "0", false, true},
		"changed by the run":        {"", "stormglass", false, false},
		"of others":                 {"", "kubectl-client-side-apply", false, false},
	} {
		o := &rbacv1.ClusterRole{ObjectMeta: named("", "x", c.label)}
		o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager"}, {Manager: c.manager}}
		if ofRun, ofAny := (&cleaner{runID: "r1"}).isCreated(o), (&cleaner{}).isCreated(o); ofRun != c.ofRun || ofAny != c.ofAny {
			t.Errorf("%s: created by r1: %v, by any run: %v; want %v, %v", name, ofRun, ofAny, c.ofRun, c.ofAny)
		}
	}
}
