package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// OutOfService adds the taint node.kubernetes.io/out-of-service to a node, as the user, or removes it.
func (t *Target) OutOfService(ctx context.Context, node string, out bool) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { return taint(ctx, client, node, out) })
	if err != nil {
		return fmt.Errorf("taint node %s: %w", node, err)
	}
	return nil
}

// LabelNode sets labels of a node, as the user.
func (t *Target) LabelNode(ctx context.Context, node string, labels map[string]string) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err == nil {
		_, err = client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("label node %s: %w", node, err)
	}
	return nil
}

// taint adds the out-of-service taint to a node, or removes it. Its patch replaces the whole list of taints. To avoid
// undoing a change of the node lifecycle controller, the patch fails with a conflict if the node has changed since
// taint read it.
func taint(ctx context.Context, client kubernetes.Interface, node string, out bool) error {
	n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	taints := slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	if out {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": n.ResourceVersion}, "spec": map[string]any{"taints": taints},
	})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
