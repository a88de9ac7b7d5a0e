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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listError is the error of a list. Who may not list what only some scenarios
// make has not made it either: that is a note and no error.
func (c *cleaner) listError(what string, err error) error {
	if apierrors.IsForbidden(err) {
		if !slices.Contains(c.removed.Unseen, what) {
			c.removed.Unseen = append(c.removed.Unseen, what)
		}
		if !slices.Contains(c.unseen, what) {
			c.unseen = append(c.unseen, what)
			c.say(c.log, fmt.Sprintf("no permission to list %s: if runs under another identity made some, they stay", what))
		}
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
	within, cancel := context.WithTimeout(ctx, namespaceWait)
	defer cancel()
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
		case <-within.Done():
			return fmt.Errorf("delete namespaces: %w%s", errNotGone, remaining(left))
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

// nodes deletes the simulated nodes and remembers which they were.
func (c *cleaner) nodes(ctx context.Context) error {
	var objects []item
	err := pages(c.owned, func(o metav1.ListOptions) (*corev1.NodeList, error) {
		return c.client.CoreV1().Nodes().List(ctx, o)
	}, func(l *corev1.NodeList) {
		for i := range l.Items {
			objects = append(objects, objectOf(l.Items[i].ObjectMeta))
		}
	})
	if err != nil {
		return c.listError("nodes", err)
	}
	slices.SortFunc(objects, func(a, b item) int { return strings.Compare(a.name, b.name) })
	for _, o := range objects {
		if !slices.Contains(c.nodesSeen, o) {
			c.nodesSeen = append(c.nodesSeen, o)
		}
	}
	return c.remove(ctx, "node", objects, &c.removed.Nodes, metav1.DeleteOptions{}, func(ctx context.Context, n item, o metav1.DeleteOptions) error {
		return c.client.CoreV1().Nodes().Delete(ctx, n.name, o)
	})
}
