package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// refused is the error of a request to an unavailable API server.
func refused() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// failing makes requests with a verb fail until fails returns nil.
func failing(c *fake.Clientset, verb string, fails func() error) {
	c.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		err := fails()
		return err != nil, nil, err
	})
}

// If an API server is unavailable for some time at the start or in the middle of a cleanup, the cleanup takes longer
// but removes everything.
func TestCleanupOutlastsAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		verb     string
		from, to time.Duration
		err      error
	}{
		"at its start":                     {"*", 0, 4 * time.Second, refused()},
		"nearly as long as it tries":       {"*", 0, CleanupBudget - 15*time.Second, refused()},
		"deletions fail":                   {"delete", 0, time.Minute, refused()},
		"the server has just started":      {"*", 0, 10 * time.Second, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", errors.New("no rules yet"))},
		"its authenticator is not there":   {"*", 0, 10 * time.Second, apierrors.NewUnauthorized("not yet")},
		"the storage of its objects hangs": {"list", 0, time.Minute, apierrors.NewTimeoutError("etcd", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := inhabited()
				began := time.Now()
				failing(client, c.verb, func() error {
					if after := time.Since(began); after >= c.from && after < c.to {
						return c.err
					}
					return nil
				})
				k := cleanerOf(client, "r1")
				k.devices = true
				var notices []string
				k.notice = func(line string) { notices = append(notices, line) }
				if err := k.persist(t.Context()); err != nil {
					t.Fatal(err)
				}
				if left := strings.Join(present(t, client), " "); strings.Contains(left, "r1") || strings.Contains(left, "sg-1") {
					t.Errorf("left: %s", left)
				}
				if got := k.removed.String(); got != "removed 1 namespace, 2 pods, 1 node, 1 lease, 1 CSINode, 1 ResourceSlice, 1 event, 1 certificate request, 2 RBAC objects, 1 cluster object" {
					t.Error(got)
				}
				if want := 1 + int(c.to/(tellEvery+retryMax)); len(notices) < want || !strings.Contains(notices[0], "trying again for ") {
					t.Errorf("%d notices, want at least %d: %q", len(notices), want, notices)
				}
			})
		})
	}
}

// A cleanup that cannot succeed ends: after its budget, earlier if only permissions are missing, and immediately if its
// context is cancelled.
func TestCleanupGivesUp(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", errors.New("no"))
	for name, c := range map[string]struct {
		err     error
		signal  time.Duration // zero: no signal
		want    string
		atLeast time.Duration
		within  time.Duration
	}{
		"refused for ever":    {refused(), 0, "connection refused (is the cluster up? is the address right?) (tried for 5m0s)", CleanupBudget, CleanupBudget},
		"no rights":           {forbidden, 0, "list namespaces: namespaces is forbidden", apiclient.RefusedBudget, apiclient.RefusedBudget + retryMax},
		"credentials refused": {apierrors.NewUnauthorized("expired"), 0, "the cluster does not accept the credentials: list namespaces: expired (have they expired?) (tried for 15s)", apiclient.RefusedBudget, apiclient.RefusedBudget + retryMax},
		"a signal":            {refused(), 7 * time.Second, "connection refused (is the cluster up? is the address right?) (tried for 7s)", 7 * time.Second, 7 * time.Second},
		"it never hears back": {os.ErrDeadlineExceeded, 0, "the cluster does not answer within 30s", CleanupBudget, CleanupBudget},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := inhabited()
				failing(client, "*", func() error { return c.err })
				ctx := t.Context()
				if c.signal > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.signal)
					defer cancel()
				}
				began := time.Now()
				k := cleanerOf(client, "r1")
				var steps []string
				k.log = func(line string) { steps = append(steps, line) }
				err := k.persist(ctx)
				if took := time.Since(began); took < c.atLeast || took > c.within {
					t.Errorf("the cleanup gave up after %s", took)
				}
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				for i, line := range steps {
					if slices.Contains(steps[:i], line) {
						t.Errorf("the cleanup logged a line twice: %s", line)
					}
				}
			})
		})
	}
}

// A namespace that is never gone does not prevent the removal of other objects.
func TestStuckNamespaceDoesNotBlockCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := inhabited()
		client.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, nil // a finalizer keeps it
		})
		err := cleanerOf(client, "r1").persist(t.Context())
		if !errors.Is(err, errNotGone) {
			t.Errorf("got %v", err)
		}
		if left := strings.Join(present(t, client), " "); strings.Contains(left, "sg-1") || strings.Contains(left, "clusterroles stormglass-r1") {
			t.Errorf("left: %s", left)
		}
	})
}

// listsConfigMaps is a cluster whose only namespaced resource is configmaps.
type (
	listsConfigMaps struct{ kubernetes.Interface }
	onlyConfigMaps  struct{ discovery.DiscoveryInterfaces }
)

func (c listsConfigMaps) Discovery() discovery.DiscoveryInterfaces {
	return onlyConfigMaps{c.Interface.Discovery()}
}

func (onlyConfigMaps) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Verbs: []string{"list"}}}}}, nil
}

// If an object blocks the deletion of a namespace, the error names the object and the command that removes its
// finalizers.
func TestObjectThatKeepsNamespaceIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ns := &corev1.Namespace{ObjectMeta: named("", "stormglass-r1", "r1")}
		ns.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue}}
		client := fake.NewClientset(ns)
		client.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
		object := func(name string, deleted *metav1.Time, finalizers ...string) *metav1.PartialObjectMetadata {
			o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: named(ns.Name, name, "")}
			o.DeletionTimestamp, o.Finalizers = deleted, finalizers
			return o
		}
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		now := metav1.Now()
		c := cleanerOf(listsConfigMaps{client}, "r1")
		c.metadata = metadatafake.NewSimpleMetadataClient(scheme, object("held", &now, "example.com/hold"), object("new", nil, "example.com/hold"), object("going", &now))
		err := c.persist(t.Context())
		const want = "not gone yet (stormglass-r1); finalizers block the deletion of stormglass-r1/held (example.com/hold): " +
			"`kubectl patch configmaps held -n stormglass-r1 --type=merge -p '{\"metadata\":{\"finalizers\":null}}'` (tried for "
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want\n%s", err, want)
		}
	})
}

// While the cleanup waits for a namespace, it searches the namespace for pods only as long as pods can exist there.
func TestEmptyNamespaceIsNotSearchedForPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Namespace{ObjectMeta: named("", "stormglass-r1", "r1")})
		began := time.Now()
		client.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, nil // the namespace controller is slow
		})
		late := &corev1.Pod{
			ObjectMeta: named("stormglass-r1", "late", ""),
			Spec:       corev1.PodSpec{NodeName: "sg-1", NodeSelector: map[string]string{RunLabel: "r1"}},
		}
		var added, forced bool
		looks := 0
		client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			looks++
			if !added && time.Since(began) > time.Second { // created by an API server that has not seen the deletion yet
				added = true
				if err := client.Tracker().Add(late); err != nil {
					t.Error(err)
				}
			}
			return false, nil, nil
		})
		client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			forced = true
			return false, nil, nil
		})
		gone := func(clienttesting.Action) (bool, runtime.Object, error) {
			return time.Since(began) > 40*time.Second, &corev1.NamespaceList{}, nil
		}
		client.PrependReactor("list", "namespaces", gone)
		if err := cleanerOf(client, "r1").persist(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !forced || looks > 10 {
			t.Errorf("the cleanup listed pods %d times in 40 s, want at most 10; it force-deleted the late pod: %v, want true", looks, forced)
		}
	})
}

// A cleanup removes the objects of nodes even if an earlier attempt removed the nodes.
func TestCleanupRemembersNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := inhabited()
		first := true
		client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			fails := first
			first = false
			return fails, nil, apierrors.NewInternalError(errors.New("etcd"))
		})
		if err := cleanerOf(client, "r1").persist(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := strings.Join(present(t, client), " "); strings.Contains(left, "leases sg-1") {
			t.Errorf("left: %s", left)
		}
	})
}

// A cleanup reports the custom resource definitions that it removed, even if it removed nothing else.
func TestRemovedDefinitionsAreReported(t *testing.T) {
	k := cleanerOf(fake.NewClientset(&corev1.Namespace{ObjectMeta: named("", "default", "")}), "")
	k.definitions, k.metadata = true, metadatafake.NewSimpleMetadataClient(metadataScheme(t), &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: definitionsGroup + "/v1", Kind: "CustomResourceDefinition"}, ObjectMeta: named("", "widgets.load.stormglass.dev", "r1"),
	})
	if err := k.persist(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := k.removed.String(); got != "removed 1 custom resource definition" {
		t.Error(got)
	}
}

// A cleanup deletes a flow schema before its priority level, and keeps a flow schema that no run created. It ignores
// kinds that the cluster does not serve.
func TestCleanupRemovesWhatActionsCreated(t *testing.T) {
	metadata := metadatafake.NewSimpleMetadataClient(metadataScheme(t),
		flowControlObject("FlowSchema", "slow", "r1"), flowControlObject("FlowSchema", "theirs", ""),
		flowControlObject("PriorityLevelConfiguration", "slow", "r1"), flowControlObject("PriorityLevelConfiguration", "other", "r2"),
	)
	k := cleanerOf(fake.NewClientset(), "r1")
	k.metadata, k.created = metadata, append([]scenario.Creatable{{Kind: "Unserved", Resource: schema.GroupVersionResource{Resource: "unserved"}}}, scenario.Creatables()...)
	metadata.PrependReactor("list", "unserved", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "unserved"}, "")
	})
	if err := k.persist(t.Context()); err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for _, a := range metadata.Actions() {
		if d, ok := a.(clienttesting.DeleteAction); ok {
			deleted = append(deleted, d.GetResource().Resource+" "+d.GetName())
		}
	}
	if got := strings.Join(deleted, ", "); got != "flowschemas slow, prioritylevelconfigurations slow" {
		t.Error(got)
	}
	if got := k.removed.String(); got != "removed 2 cluster objects" {
		t.Error(got)
	}
}

func metadataScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func flowControlObject(kind, name, runID string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "flowcontrol.apiserver.k8s.io/v1", Kind: kind}, ObjectMeta: named("", name, runID),
	}
}

// If the user may not list a kind, the cleanup does not report that no such objects exist.
func TestCleanupMakesNoClaimAboutUnlistableKinds(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", fmt.Errorf("no"))
	})
	k := cleanerOf(client, "")
	if err := k.persist(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := k.removed.String(); got != "nothing to remove, as far as permitted (no permission to list nodes)" {
		t.Error(got)
	}
}

// brokenMetricsAPI is a cluster whose aggregated API metrics.k8s.io does not answer.
type brokenMetricsAPI struct{ discovery.DiscoveryInterfaces }

func (brokenMetricsAPI) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	verbs := []string{"list", "delete"}
	return []*metav1.APIResourceList{
			{GroupVersion: "scheduling.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "priorityclasses", Kind: "PriorityClass", Verbs: verbs}}},
		}, &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{
			{Group: "metrics.k8s.io", Version: "v1beta1"}: apierrors.NewServiceUnavailable("no endpoints"),
		}}
}

// If an aggregated API does not answer, the cleanup removes the other objects and names the API.
func TestCleanupNamesAnAPIThatDoesNotAnswer(t *testing.T) {
	k := cleanerOf(fake.NewClientset(), "r1")
	k.discovery = brokenMetricsAPI{}
	k.metadata = metadatafake.NewSimpleMetadataClient(metadataScheme(t), &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: named("", "low", "r1"),
	})
	if err := k.persist(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := k.removed.String(); got != "removed 1 cluster object, without the objects of metrics.k8s.io/v1beta1 (the API did not answer)" {
		t.Error(got)
	}
}
