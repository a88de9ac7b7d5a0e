package node

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// apiPod returns a pod whose container began to run at the given time.
func apiPod(start time.Time) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
	}}}}
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(start)}}}}
	return p
}

func TestLogsOfASimulatedContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := apiPod(time.Now())
		k := &kubelet{plan: &plan{Config: Config{clock: clock.RealClock{}}}}
		time.Sleep(9500 * time.Millisecond) // virtual
		read := func(o corev1.PodLogOptions) string {
			var out bytes.Buffer
			if err := k.Log(t.Context(), pod, "c", &o, &out); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		all := read(corev1.PodLogOptions{})
		if n := strings.Count(all, "\n"); n != 10 || !strings.Contains(all, "line 9 of container c of pod ns/web") {
			t.Errorf("%d lines:\n%s", n, all)
		}
		two, three := int64(2), int64(3)
		if got := read(corev1.PodLogOptions{TailLines: &two}); got == "" || !strings.HasSuffix(all, got) || strings.Count(got, "\n") != 2 {
			t.Errorf("tail of two lines:\n%s", got)
		}
		if got := read(corev1.PodLogOptions{SinceSeconds: &three}); !strings.HasSuffix(all, got) || strings.Count(got, "\n") != 3 {
			t.Errorf("log of three seconds:\n%s", got)
		}
		first, _, _ := strings.Cut(read(corev1.PodLogOptions{Timestamps: true}), " ")
		if at, err := time.Parse(time.RFC3339Nano, first); err != nil || !at.Equal(pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time) {
			t.Errorf("the first line is dated %s, %v", first, err)
		}
		if err := k.Log(t.Context(), pod, "c", &corev1.PodLogOptions{Previous: true}, &bytes.Buffer{}); err == nil {
			t.Error("the node serves the log of a previous container that never existed")
		}
	})
}

func TestUsageOfASimulatedContainer(t *testing.T) {
	k := &kubelet{plan: &plan{Config: Config{Seed: 3}}}
	pod := apiPod(time.Now())
	u := k.usageOf(pod, &pod.Spec.Containers[0])
	if u.cores < 0.25 || u.cores > 0.75 || u.bytes < 1<<28 || u.bytes > 3<<28 {
		t.Errorf("the container uses %v cores and %v bytes, want 25%% to 75%% of its requests of 1 and %d", u.cores, u.bytes, 1<<30)
	}
	if again := k.usageOf(pod, &pod.Spec.Containers[0]); again != u {
		t.Errorf("got %v, then %v", u, again)
	}
	pod.Annotations = map[string]string{cpuUsage: "250m", memoryUsage: "64Mi"}
	if u = k.usageOf(pod, &pod.Spec.Containers[0]); u.cores != 0.25 || u.bytes != 64<<20 {
		t.Errorf("its annotations ask for 250m and 64Mi: %v and %v", u.cores, u.bytes)
	}
	pod.Annotations[cpuUsage] = "1e1000"
	if u = k.usageOf(pod, &pod.Spec.Containers[0]); u.cores > 0.75 {
		t.Errorf("its annotation is not a quantity: %v cores", u.cores)
	}
}

// TestContainerFollowsDemand reads a container's CPU time while its part of a demand changes between two looks.
func TestContainerFollowsDemand(t *testing.T) {
	var cores, seconds float64
	demanded := false
	k := &kubelet{plan: &plan{Config: Config{Use: func(map[string]string) (float64, float64, bool) { return cores, seconds, demanded }}}}
	start := time.Now()
	pod := apiPod(start)
	pod.Annotations = map[string]string{cpuUsage: "100m"}
	var counter cpuCounter
	counter.at = start
	look := func(after int) float64 {
		counter.count(start.Add(time.Duration(after)*time.Second), k.usageOf(pod, &pod.Spec.Containers[0]))
		return counter.seconds
	}
	if got := look(10); got != 1 {
		t.Errorf("100m for 10 s result in %v CPU seconds", got)
	}
	demanded, cores, seconds = true, 2, 40
	if got := look(11); got != 3 {
		t.Errorf("after a demand of 2 cores has begun: %v CPU seconds", got)
	}
	cores, seconds = 1, 55 // it was 2 for 5 of the 10 s
	if got := look(21); got != 18 {
		t.Errorf("after a demand that has halved: %v CPU seconds", got)
	}
}

// TestNodeWithoutPodsUsesSomething: metrics-server drops a node without use, and `kubectl top nodes` then prints
// <unknown>.
func TestNodeWithoutPodsUsesSomething(t *testing.T) {
	k := &kubelet{plan: &plan{}}
	now := time.Now()
	k.Summary(now)
	s := k.Summary(now.Add(10 * time.Second)).Node
	if *s.CPU.UsageCoreNanoSeconds != 5e8 || *s.Memory.WorkingSetBytes != 256<<20 {
		t.Errorf("in 10 s, the node reports %d ns of CPU and %d bytes", *s.CPU.UsageCoreNanoSeconds, *s.Memory.WorkingSetBytes)
	}
}
