package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// OutOfService adds and removes the taint, and does not change other taints.
func TestOutOfServiceLeavesOtherTaints(t *testing.T) {
	unreachable := corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{unreachable}}})
	for _, out := range []bool{true, true, false, false} {
		if err := taint(t.Context(), client, "n", out); err != nil {
			t.Fatal(err)
		}
		n, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := []corev1.Taint{unreachable}
		if out {
			want = append(want, corev1.Taint{Key: "node.kubernetes.io/out-of-service", Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
		}
		if !slices.Equal(n.Spec.Taints, want) {
			t.Errorf("after OutOfService(%t): taints %+v, want %+v", out, n.Spec.Taints, want)
		}
	}
}
