package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// cleanupTimeout bounds the wait for namespaces and pods to end, which
// controllers of the cluster do at their own pace.
const cleanupTimeout = 4 * time.Minute

// Removed counts what a cleanup removed.
type Removed struct {
	Namespaces, Pods, Nodes, Leases, CSINodes, CertificateRequests, RBAC, Definitions int
}

// String is one line.
func (r Removed) String() string {
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{
		{r.Namespaces, "namespace"}, {r.Pods, "pod"}, {r.Nodes, "node"}, {r.Leases, "lease"}, {r.CSINodes, "CSINode"},
		{r.CertificateRequests, "certificate request"}, {r.RBAC, "RBAC object"},
	} {
		if x.n > 0 {
			parts = append(parts, count(x.n, x.what))
		}
	}
	if len(parts) == 0 {
		return "nothing to remove"
	}
	return "removed " + strings.Join(parts, ", ")
}

// Cleanup removes what the run of an id made, or with "" what every run did,
// and returns when it is gone. It finds things by their labels alone, deletes
// by UID, and goes on past an error so that as much as can goes. log is told
// each step. In order:
//
//  1. namespaces, and with them workloads and pods; pods that wait for a
//     kubelet which no longer runs are deleted by force
//  2. nodes
//  3. pods of others on those nodes (DaemonSets that tolerate every taint)
//  4. the nodes' Leases and CSINodes, certificate requests, cluster-wide RBAC
//  5. definitions of custom resources
func Cleanup(ctx context.Context, cfg *rest.Config, runID string, log func(string)) (Removed, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return Removed{}, err
	}
	removed, err := cleanup(ctx, client, runID, log)
	crds, crdErr := removeDefinitions(ctx, cfg, runID, log)
	removed.Definitions = crds
	return removed, errors.Join(err, crdErr)
}

func cleanup(ctx context.Context, client kubernetes.Interface, runID string, log func(string)) (Removed, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cleanupTimeout, fmt.Errorf("not gone within %s", cleanupTimeout))
	defer cancel()
	c := &cleaner{client: client, owned: metav1.ListOptions{LabelSelector: ownedBy(runID), Limit: 500}, log: log}
	errs := []error{c.namespaces(ctx)}
	nodes, err := c.nodes(ctx)
	errs = append(errs, err, c.podsOn(ctx, nodes), c.leases(ctx, nodes), c.csiNodes(ctx, nodes), c.certificateRequests(ctx), c.rbac(ctx))
	return c.removed, errors.Join(errs...)
}

type cleaner struct {
	client  kubernetes.Interface
	owned   metav1.ListOptions
	log     func(string)
	removed Removed
}

// all is owned without the label.
func (c *cleaner) all() metav1.ListOptions { return metav1.ListOptions{Limit: c.owned.Limit} }

// object is what deleting one needs.
type item struct {
	namespace, name string
	uid             types.UID
}

func objectOf(m metav1.ObjectMeta) item { return item{m.Namespace, m.Name, m.UID} }

// pages lists page by page.
func pages[L interface{ GetContinue() string }](o metav1.ListOptions, list func(metav1.ListOptions) (L, error), each func(L)) error {
	for {
		l, err := list(o)
		if err != nil {
			return err
		}
		each(l)
		if o.Continue = l.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// remove deletes objects, each only if it is still the one that was listed,
// and adds to removed how many. One that is gone already is as good; one that
// cannot be deleted keeps no other.
func (c *cleaner) remove(ctx context.Context, kind string, objects []item, removed *int, o metav1.DeleteOptions, del func(context.Context, item, metav1.DeleteOptions) error) error {
	if len(objects) == 0 {
		return nil
	}
	names := objects[0].name
	if len(objects) > 1 {
		names = fmt.Sprintf("%s ... %s", names, objects[len(objects)-1].name)
	}
	c.log(fmt.Sprintf("deleting %s: %s", count(len(objects), kind), names))
	refused := make([]error, len(objects))
	err := forEach(ctx, len(objects), func(ctx context.Context, i int) error {
		o := o
		o.Preconditions = &metav1.Preconditions{UID: &objects[i].uid}
		err := del(ctx, objects[i], o)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			refused[i] = fmt.Errorf("delete %s %s: %w", kind, objects[i].name, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", count(len(objects), kind), err)
	}
	refused = slices.DeleteFunc(refused, func(err error) bool { return err == nil })
	*removed += len(objects) - len(refused)
	switch len(refused) {
	case 0:
		return nil
	case 1:
		return refused[0]
	}
	return fmt.Errorf("%w (and %d more)", refused[0], len(refused)-1) // as a rule all for one reason
}

// listError is the error of a list. Who may not list what only some scenarios
// make has not made it either: that is a note and no error.
func (c *cleaner) listError(what string, err error) error {
	if apierrors.IsForbidden(err) {
		c.log(fmt.Sprintf("no permission to list %s: if runs under another identity made some, they stay", what))
		return nil
	}
	return fmt.Errorf("list %s: %w", what, err)
}

func (c *cleaner) namespaces(ctx context.Context) error {
	list := func() (out []corev1.Namespace, err error) {
		err = pages(c.owned, func(o metav1.ListOptions) (*corev1.NamespaceList, error) {
			return c.client.CoreV1().Namespaces().List(ctx, o)
		}, func(l *corev1.NamespaceList) { out = append(out, l.Items...) })
		if err != nil {
			err = fmt.Errorf("list namespaces: %w", err)
		}
		return out, err
	}
	left, err := list()
	if err != nil {
		return err
	}
	var objects []item
	for _, ns := range left {
		objects = append(objects, objectOf(ns.ObjectMeta))
	}
	err = c.remove(ctx, "namespace", objects, &c.removed.Namespaces, metav1.DeleteOptions{}, func(ctx context.Context, n item, o metav1.DeleteOptions) error {
		return c.client.CoreV1().Namespaces().Delete(ctx, n.name, o)
	})
	if err != nil {
		return err
	}
	tick := time.NewTicker(5 * settle)
	defer tick.Stop()
	for {
		if left, err = list(); err == nil && len(left) == 0 {
			return nil
		}
		for _, ns := range left {
			err = errors.Join(err, c.endPods(ctx, ns.Name))
		}
		if ctx.Err() == nil && err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("delete namespaces: %w%s", context.Cause(ctx), remaining(left))
		}
	}
}

// remaining says what the namespace controller says it waits for.
func remaining(left []corev1.Namespace) string {
	for _, ns := range left {
		for _, condition := range ns.Status.Conditions {
			if condition.Type == corev1.NamespaceContentRemaining && condition.Status == corev1.ConditionTrue {
				return fmt.Sprintf(" (%s: %s)", ns.Name, condition.Message)
			}
		}
	}
	return ""
}

// endPods ends what is left of a namespace's pods on simulated nodes, which no
// kubelet will do.
func (c *cleaner) endPods(ctx context.Context, namespace string) error {
	return c.forcePods(ctx, namespace, c.all(), func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && p.Spec.NodeSelector[RunLabel] != ""
	})
}

func (c *cleaner) podsOn(ctx context.Context, nodes []item) error {
	if len(nodes) == 0 {
		return nil
	}
	ours := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		ours[n.name] = true
	}
	return c.forcePods(ctx, metav1.NamespaceAll, c.all(), func(p *corev1.Pod) bool {
		return ours[p.Spec.NodeName]
	})
}

// forcePods deletes pods with no grace: nothing of them runs anywhere.
func (c *cleaner) forcePods(ctx context.Context, namespace string, o metav1.ListOptions, which func(*corev1.Pod) bool) error {
	var objects []item
	err := pages(o, func(o metav1.ListOptions) (*corev1.PodList, error) {
		return c.client.CoreV1().Pods(namespace).List(ctx, o)
	}, func(l *corev1.PodList) {
		for i := range l.Items {
			if which(&l.Items[i]) {
				objects = append(objects, objectOf(l.Items[i].ObjectMeta))
			}
		}
	})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	now := int64(0)
	return c.remove(ctx, "pod", objects, &c.removed.Pods, metav1.DeleteOptions{GracePeriodSeconds: &now}, func(ctx context.Context, p item, o metav1.DeleteOptions) error {
		return c.client.CoreV1().Pods(p.namespace).Delete(ctx, p.name, o)
	})
}

// nodes deletes the simulated nodes and returns which they were.
func (c *cleaner) nodes(ctx context.Context) ([]item, error) {
	var objects []item
	err := pages(c.owned, func(o metav1.ListOptions) (*corev1.NodeList, error) {
		return c.client.CoreV1().Nodes().List(ctx, o)
	}, func(l *corev1.NodeList) {
		for i := range l.Items {
			objects = append(objects, objectOf(l.Items[i].ObjectMeta))
		}
	})
	if err != nil {
		return nil, c.listError("nodes", err)
	}
	slices.SortFunc(objects, func(a, b item) int { return strings.Compare(a.name, b.name) })
	err = c.remove(ctx, "node", objects, &c.removed.Nodes, metav1.DeleteOptions{}, func(ctx context.Context, n item, o metav1.DeleteOptions) error {
		return c.client.CoreV1().Nodes().Delete(ctx, n.name, o)
	})
	return objects, err
}
