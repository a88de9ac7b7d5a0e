package realplane

import (
	"context"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Controllers react to the simulated pods: a Job completes, a node under pressure gets its taint, and an evicted pod is
// removed.
func TestControllersActOnPodLives(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Cluster().Kubeconfigs["admin"])
	must(t, err)
	client := kubernetes.NewForConfigOrDie(config)
	signer, err := node.NewSigner(loadConfig(t), plane.Cluster().NodeCA)
	must(t, err)
	second := scenario.Spread{Median: time.Second, P99: time.Second}
	life := func(name string) scenario.PodLife {
		return scenario.PodLife{Name: name, Match: scenario.PodMatch{Labels: map[string]string{"life": name}}}
	}
	crashing, evicted := life("crashing"), life("evicted")
	crashing.RunFor, crashing.ExitCode = second, 1
	evicted.StopAfter = scenario.Spread{Median: time.Minute, P99: time.Minute}
	evicted.Evict = scenario.Eviction{After: second, Condition: "MemoryPressure", For: scenario.Duration(time.Minute)}
	labels := map[string]string{"stormglass.example/run": "lives"}
	fleet, err := node.New(node.Config{
		Spec: scenario.Nodes{
			Count: 1, Fidelity: node.Lean, Zones: 1, CPU: "8", Memory: "32Gi", Pods: 110, LeaseRenew: scenario.Duration(10 * time.Second),
			StatusReport: scenario.Duration(5 * time.Minute), RegisterRate: 50, PodLives: []scenario.PodLife{crashing, evicted},
		},
		Identities: signer, Labels: labels, Taints: []corev1.Taint{taint}, NamePrefix: "lives-", Seed: 1, Log: t.Logf,
	})
	must(t, err)
	defer func() {
		fleet.Stop(context.WithoutCancel(ctx))
		must(t, client.CoreV1().Nodes().Delete(context.WithoutCancel(ctx), "lives-0", metav1.DeleteOptions{}))
	}()
	must(t, fleet.Start(ctx))

	pods := client.CoreV1().Pods("default")
	spec := corev1.PodSpec{
		Containers:  []corev1.Container{{Name: "c", Image: "pause", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}},
		Tolerations: []corev1.Toleration{{Key: taint.Key, Effect: taint.Effect}},
	}
	make := func(name string) {
		_, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"life": name}}, Spec: spec}, metav1.CreateOptions{})
		must(t, err)
	}
	get := func(name string) *corev1.Pod {
		p, err := pods.Get(ctx, name, metav1.GetOptions{})
		must(t, err)
		return p
	}
	completions := int32(3)
	job := batchv1.JobSpec{Completions: &completions, Parallelism: &completions, Template: corev1.PodTemplateSpec{Spec: spec}}
	job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err = client.BatchV1().Jobs("default").Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Spec: job}, metav1.CreateOptions{})
	must(t, err)
	make("crashing")
	make("drained")
	poll(t, ctx, func() bool {
		s := get("crashing").Status
		return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Terminated != nil && s.ContainerStatuses[0].RestartCount == 1
	})
	if s := get("crashing").Status; s.Phase != corev1.PodRunning || s.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode != 1 {
		t.Errorf("status %+v", s)
	}
	poll(t, ctx, func() bool { return get("drained").Status.Phase == corev1.PodRunning })
	for _, c := range get("drained").Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Reason != "" || c.Message != "") {
			t.Errorf("condition %s is True because of %q, %q", c.Type, c.Reason, c.Message)
		}
	}
	must(t, pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "drained"}}))
	poll(t, ctx, func() bool {
		_, err := pods.Get(ctx, "drained", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	poll(t, ctx, func() bool {
		j, err := client.BatchV1().Jobs("default").Get(ctx, "batch", metav1.GetOptions{})
		must(t, err)
		return j.Status.Succeeded == completions && j.Status.CompletionTime != nil
	})
	make("evicted")
	poll(t, ctx, func() bool { return get("evicted").Status.Reason == "Evicted" })
	poll(t, ctx, func() bool {
		n, err := client.CoreV1().Nodes().Get(ctx, "lives-0", metav1.GetOptions{})
		must(t, err)
		return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeMemoryPressure })
	})

	background := metav1.DeletePropagationBackground
	must(t, client.BatchV1().Jobs("default").Delete(ctx, "batch", metav1.DeleteOptions{PropagationPolicy: &background}))
	must(t, pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	poll(t, ctx, func() bool {
		left, err := pods.List(ctx, metav1.ListOptions{})
		must(t, err)
		return len(left.Items) == 0
	})
}
