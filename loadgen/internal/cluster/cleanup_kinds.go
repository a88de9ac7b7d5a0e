package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/objects"
)

type item struct {
	namespace, name string
	uid             types.UID
}

type deletion func(context.Context, item, metav1.DeleteOptions) error

type collection[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// listed lists a collection page by page. It returns the objects that match o and for which `keep` returns true. A nil
// `keep` accepts all objects. plural is the collection's name in errors.
func listed[L runtime.Object](ctx context.Context, plural string, from collection[L], o metav1.ListOptions, keep func(runtime.Object) bool) ([]item, error) {
	var items []item
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return from.List(ctx, o) })
	err := pages.EachListItem(ctx, o, func(object runtime.Object) error {
		m, err := meta.Accessor(object)
		if err == nil && (keep == nil || keep(object)) {
			items = append(items, item{m.GetNamespace(), m.GetName(), m.GetUID()})
		}
		return err
	})
	if err != nil {
		return items, fmt.Errorf("list %s: %w", plural, err)
	}
	return items, nil
}

func removeListed[L runtime.Object](ctx context.Context, c *cleaner, kind, plural string, from collection[L], o metav1.ListOptions, keep func(runtime.Object) bool, removed *int) error {
	items, err := listed(ctx, plural, from, o, keep)
	if err != nil {
		return err
	}
	return c.remove(ctx, kind, items, removed, byName(from))
}

// removeCreated removes from a cluster-scoped collection the objects that the run created. It finds an object by the
// run's label or, if the object has lost the label, by the field manager that created it.
func removeCreated[L runtime.Object](ctx context.Context, c *cleaner, kind, plural string, from collection[L], removed *int) error {
	return removeListed(ctx, c, kind, plural, from, c.all(), c.isCreated, removed)
}

// isCreated reports whether the run, or any run if runID is empty, created an object. It returns false for an object of
// a run in c.keep.
func (c *cleaner) isCreated(o runtime.Object) bool {
	m, err := meta.Accessor(o)
	if err != nil {
		return false
	}
	switch id := m.GetLabels()[RunLabel]; {
	case slices.Contains(c.keep, id):
		return false
	case id != "" && (c.runID == "" || id == c.runID):
		return true
	}
	return slices.ContainsFunc(m.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		id, ok := strings.CutPrefix(f.Manager, objects.CreatorPrefix)
		return ok && (c.runID == "" || id == c.runID) && !slices.Contains(c.keep, id)
	})
}

func byName[L runtime.Object](from collection[L]) deletion {
	return func(ctx context.Context, i item, o metav1.DeleteOptions) error { return from.Delete(ctx, i.name, o) }
}

// noteUnseen handles the error of a list. If the user may not list the kind, it records the kind and returns nil, so that
// the cleanup continues with other kinds. It returns all other errors unchanged.
func (c *cleaner) noteUnseen(plural string, err error) error {
	if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "list ") {
		return err
	}
	if !slices.Contains(c.removed.Unseen, plural) {
		c.removed.Unseen = append(c.removed.Unseen, plural)
	}
	if !slices.Contains(c.unseen, plural) {
		c.unseen = append(c.unseen, plural)
		c.say(c.log, fmt.Sprintf("no permission to list %s: such objects of other users' runs are not removed", plural))
	}
	return nil
}

func (c *cleaner) namespaces(ctx context.Context) error {
	client := c.client.CoreV1().Namespaces()
	var left []*corev1.Namespace
	list := func() ([]item, error) {
		left = nil
		return listed(ctx, "namespaces", client, c.owned, func(o runtime.Object) bool {
			left = append(left, o.(*corev1.Namespace))
			return true
		})
	}
	items, err := list()
	if err == nil {
		err = c.remove(ctx, "namespace", items, &c.removed.Namespaces, byName(client))
	}
	if err != nil || c.removed.DryRun {
		return err
	}
	deleted, podless := time.Now(), map[types.UID]bool{}
	within, cancel := context.WithTimeout(ctx, namespaceWait)
	defer cancel()
	for pause := 5 * settle; ; pause = min(2*pause, namespacePoll) {
		if items, err = list(); err == nil && len(items) == 0 {
			return nil
		}
		for _, ns := range items {
			if podless[ns.uid] {
				continue
			}
			// The simulated nodes no longer run, so no kubelet completes the deletion of the pods on them.
			looked, pods := time.Now(), 0
			failed := c.forcePods(ctx, ns.name, func(p *corev1.Pod) bool {
				pods++
				return p.Spec.NodeName != "" && p.Spec.NodeSelector[RunLabel] != ""
			})
			podless[ns.uid] = failed == nil && pods == 0 && looked.Sub(deleted) >= closedAfter
			err = errors.Join(err, failed)
		}
		if ctx.Err() == nil && err != nil {
			return err
		}
		if !apiclient.Pause(within, pause) {
			return blocked(fmt.Errorf("delete namespaces: %w%s", errNotGone, remaining(left)), c.heldIn(ctx, left))
		}
	}
}

// remaining lists the namespaces in `left`, each with the remaining objects that the namespace controller reports. It
// returns "" if `left` is empty.
func remaining(left []*corev1.Namespace) string {
	var all []string
	for _, ns := range left {
		text := ns.Name
		for _, condition := range ns.Status.Conditions {
			if condition.Type == corev1.NamespaceContentRemaining && condition.Status == corev1.ConditionTrue {
				text += ": " + condition.Message
			}
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + some(all) + ")"
}

const maxSearched = 10

// heldIn describes the objects that wait for finalizers in namespaces that are being deleted. It leaves out objects that
// it cannot list.
func (c *cleaner) heldIn(ctx context.Context, left []*corev1.Namespace) (held []string) {
	left = slices.DeleteFunc(slices.Clone(left), func(ns *corev1.Namespace) bool {
		return !slices.ContainsFunc(ns.Status.Conditions, func(s corev1.NamespaceCondition) bool {
			return s.Type == corev1.NamespaceFinalizersRemaining && s.Status == corev1.ConditionTrue
		})
	})
	if c.metadata == nil || ctx.Err() != nil || len(left) == 0 {
		return nil
	}
	lists, _ := c.client.Discovery().ServerPreferredNamespacedResources() // a group that does not answer has no list
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			if err != nil || strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			resource := gv.WithResource(r.Name)
			for _, ns := range left[:min(len(left), maxSearched)] {
				of := metadataCollection{c.metadata.Resource(resource).Namespace(ns.Name)}
				_, _ = listed(ctx, r.Name, of, c.all(), func(o runtime.Object) bool {
					if m, err := meta.Accessor(o); err == nil && m.GetDeletionTimestamp() != nil && len(m.GetFinalizers()) > 0 {
						held = append(held, unhold(resource, m))
					}
					return false
				})
			}
		}
	}
	return held
}

func namesOf(items []item) (names []string) {
	for _, i := range items {
		names = append(names, i.name)
	}
	return names
}

// forcePods deletes pods with a grace period of 0. This is safe for pods of simulated nodes, which run no containers.
func (c *cleaner) forcePods(ctx context.Context, namespace string, which func(*corev1.Pod) bool) error {
	keep := func(o runtime.Object) bool { return which(o.(*corev1.Pod)) }
	items, err := listed(ctx, "pods", c.client.CoreV1().Pods(namespace), c.all(), keep)
	if err != nil {
		return err
	}
	return c.remove(ctx, "pod", items, &c.removed.Pods, func(ctx context.Context, p item, o metav1.DeleteOptions) error {
		o.GracePeriodSeconds = new(int64)
		return c.client.CoreV1().Pods(p.namespace).Delete(ctx, p.name, o)
	})
}

// nodes deletes the simulated nodes, and records them in nodesSeen.
func (c *cleaner) nodes(ctx context.Context) error {
	client := c.client.CoreV1().Nodes()
	items, err := listed(ctx, "nodes", client, c.owned, nil)
	if err != nil {
		return c.noteUnseen("nodes", err)
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	for _, node := range items {
		if !slices.Contains(c.nodesSeen, node) {
			c.nodesSeen = append(c.nodesSeen, node)
		}
	}
	return c.remove(ctx, "node", items, &c.removed.Nodes, byName(client))
}

// ofNodes removes the pods on the nodes, and the nodes' Leases and CSINodes. It finds Leases and CSINodes, which have no
// label, by the node's name and the owner reference. The garbage collector would delete them too, but later.
func (c *cleaner) ofNodes(ctx context.Context) error {
	if len(c.nodesSeen) == 0 {
		return nil
	}
	uids := make(map[string]types.UID, len(c.nodesSeen))
	for _, n := range c.nodesSeen {
		uids[n.name] = n.uid
	}
	owned := func(o runtime.Object) bool {
		m, err := meta.Accessor(o)
		if err != nil {
			return false
		}
		uid, ours := uids[m.GetName()]
		return ours && slices.ContainsFunc(m.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
	}
	pods := c.forcePods(ctx, metav1.NamespaceAll, func(p *corev1.Pod) bool {
		_, ours := uids[p.Spec.NodeName]
		return ours
	})
	leases := removeListed(ctx, c, "lease", "leases in "+leaseNamespace,
		c.client.CoordinationV1().Leases(leaseNamespace), c.all(), owned, &c.removed.Leases)
	csi := removeListed(ctx, c, "CSINode", "csinodes", c.client.StorageV1().CSINodes(), c.all(), owned, &c.removed.CSINodes)
	return errors.Join(pods, leases, c.noteUnseen("csinodes", csi))
}

// nodeEvents removes the Events of the nodes in one request, because there are several for each node.
func (c *cleaner) nodeEvents(ctx context.Context) error {
	client := c.client.CoreV1().Events(metav1.NamespaceDefault)
	items, err := listed(ctx, "events", client, c.owned, nil)
	if err != nil {
		return c.noteUnseen("events", err)
	}
	if len(items) == 0 {
		return nil
	}
	if c.removed.DryRun {
		c.say(c.log, count(len(items), "Event")+" of nodes")
		c.removed.Events += len(items)
		return nil
	}
	c.say(c.log, fmt.Sprintf("deleting %d Events of nodes", len(items)))
	if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: c.owned.LabelSelector}); err != nil {
		return fmt.Errorf("delete events: %w", err)
	}
	c.removed.Events += len(items)
	return nil
}

// all returns the options to list all objects, with or without a run's label.
func (c *cleaner) all() metav1.ListOptions { return metav1.ListOptions{Limit: c.owned.Limit} }

func (c *cleaner) certificateRequests(ctx context.Context) error {
	const plural = "certificatesigningrequests"
	client := c.client.CertificatesV1().CertificateSigningRequests()
	return c.noteUnseen(plural, removeListed(ctx, c, "certificate request", plural, client, c.owned, nil, &c.removed.CertificateRequests))
}

// rbac deletes bindings before roles, so that no binding names a missing role.
func (c *cleaner) rbac(ctx context.Context) error {
	client := c.client.RbacV1()
	err := removeCreated(ctx, c, "clusterrolebinding", "clusterrolebindings", client.ClusterRoleBindings(), &c.removed.RBAC)
	if err != nil {
		return err
	}
	return removeCreated(ctx, c, "clusterrole", "clusterroles", client.ClusterRoles(), &c.removed.RBAC)
}

// removeJobs removes the namespaces of cleanup Jobs. It does not wait until they are gone, because this cleanup may
// itself run in one of them.
func (c *cleaner) removeJobs(ctx context.Context) error {
	if !c.jobs {
		return nil
	}
	client := c.client.CoreV1().Namespaces()
	return removeListed(ctx, c, "namespace", "namespaces", client, c.ofJobs, nil, &c.removed.Namespaces)
}

func (c *cleaner) removeLocks(ctx context.Context) error {
	if !c.locks {
		return nil
	}
	plural := "leases in " + lockNamespace
	return c.noteUnseen(plural, removeListed(ctx, c, "lock", plural, c.client.CoordinationV1().Leases(lockNamespace), c.owned, nil, &c.removed.Leases))
}

type metadataCollection struct{ metadata.ResourceInterface }

func (c metadataCollection) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return c.ResourceInterface.Delete(ctx, name, o)
}

// clusterObjects removes the run's cluster-scoped objects of the kinds that actions create.
func (c *cleaner) clusterObjects(ctx context.Context) error {
	var errs []error
	for _, k := range c.created {
		if k.Namespaced || k.Defines() { // removed with the namespaces, or by removeDefinitions
			continue
		}
		err := c.removeObjects(ctx, k.Resource, k.Kind)
		if apierrors.IsNotFound(err) { // the cluster does not serve this version
			continue
		}
		errs = append(errs, c.noteUnseen(k.Resource.Resource, err))
	}
	return errors.Join(errs...)
}

// removeObjects removes the objects of the cluster-scoped resource r that runs created. It also records these objects,
// so that removeMade can check whether they are gone.
func (c *cleaner) removeObjects(ctx context.Context, r schema.GroupVersionResource, kind string) error {
	return removeListed(ctx, c, kind, r.Resource, metadataCollection{c.metadata.Resource(r)}, c.all(), func(o runtime.Object) bool {
		created := c.isCreated(o)
		if m, err := meta.Accessor(o); created && err == nil && c.made != nil {
			c.made.add(r, kind, m.GetUID())
		}
		return created
	}, &c.removed.ClusterObjects)
}

// removeDefinitions deletes the custom resource definitions that runs created, and thereby the remaining custom
// resources. It does not wait until the custom resources are gone.
func (c *cleaner) removeDefinitions(ctx context.Context) error {
	if !c.definitions {
		return nil
	}
	client := c.metadata.Resource(schema.GroupVersionResource{Group: definitionsGroup, Version: "v1", Resource: definitions})
	err := removeCreated(ctx, c, "custom resource definition", definitions, metadataCollection{client}, &c.removed.Definitions)
	return c.noteUnseen(definitions, err)
}
