package realplane

import (
	"context"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// The scheduler places pods only on the node pool that they select, even if the pool's label is one that a kubelet may
// not set.
func TestPodsRunOnTheirPool(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := scenario.Parse("test.yaml", []byte(`
apiVersion: stormglass/v1alpha1
kind: Scenario
name: test
nodes:
  count: 4
  objectSize: 15KiB
  pools:
    - {name: fpga, count: 1, resources: {example.com/fpga: 4}, taints: [{key: fpga, effect: NoSchedule}]}
    - {name: infra, count: 2, labels: {node-role.kubernetes.io/infra: ""}}
phases: [{name: a, for: 1s}]
`), nil)
	must(t, err)
	theirs, err := cluster.FromKubeconfig(ctx, cluster.Kubeconfig{Files: plane.Cluster().Kubeconfigs["admin"]}, "pools", plan.Of(s), func(string) {})
	must(t, err)
	must(t, theirs.Setup(ctx))
	defer func() { must(t, theirs.Cleanup(context.WithoutCancel(ctx), nil)) }()
	identities, _ := theirs.Identities(s.Nodes)
	fleet, err := node.New(node.Config{
		Spec: s.Nodes, Identities: identities, Labels: theirs.Labels, Label: theirs.LabelNode,
		Taints: theirs.Taints(), NamePrefix: theirs.NodePrefix(), Seed: 1, Log: t.Logf,
	})
	must(t, err)
	defer fleet.Stop(context.WithoutCancel(ctx))
	must(t, fleet.Start(ctx))

	client := kubernetes.NewForConfigOrDie(theirs.Admin)
	pods := client.CoreV1().Pods(theirs.Namespace)
	create := func(app string, count int, change func(*corev1.PodSpec)) {
		for range count {
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{GenerateName: app + "-", Labels: map[string]string{"app": app}},
				Spec: corev1.PodSpec{
					NodeSelector: maps.Clone(theirs.NodeSelector()), Tolerations: cluster.Tolerations(), Containers: []corev1.Container{{Name: "c", Image: "pause"}},
				},
			}
			change(&p.Spec)
			_, err := pods.Create(ctx, p, metav1.CreateOptions{})
			must(t, err)
		}
	}
	create("fpga", 4, func(p *corev1.PodSpec) {
		p.Tolerations = append(p.Tolerations, corev1.Toleration{Key: "fpga", Operator: corev1.TolerationOpExists})
		p.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/fpga": resource.MustParse("1")}
	})
	create("infra", 4, func(p *corev1.PodSpec) { p.NodeSelector["node-role.kubernetes.io/infra"] = "" })

	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: cluster.RunLabel + "=pools"})
	must(t, err)
	pool := map[string]string{}
	for _, n := range nodes.Items {
		pool[n.Name] = n.Labels[corev1.LabelInstanceTypeStable]
		n.ManagedFields = nil
		if size := n.Size(); size < 15000 || size > 15800 {
			t.Errorf("node %s has %d bytes, want 15 KiB", n.Name, size)
		}
	}
	eventually(ctx, t, "all pods are Running", func() (bool, error) {
		all, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		if err != nil || len(all.Items) < 8 {
			return false, err
		}
		for _, p := range all.Items {
			if at := pool[p.Spec.NodeName]; at != p.Labels["app"] {
				t.Errorf("pod %s runs on pool %q", p.Name, at)
			}
		}
		return true, nil
	})
}
