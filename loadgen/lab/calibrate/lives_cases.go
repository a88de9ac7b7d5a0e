package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// lifeCase is a pod that is created on a real and on a simulated node to compare its lifecycle. On the real node, the
// arguments of the container cause the lifecycle. On the simulated node, the field `life` does.
type lifeCase struct {
	name   string // name of the lifecycle, which is part of the pod names; a DNS label
	says   string // description of the lifecycle, to print
	life   scenario.PodLife
	change func(*corev1.Pod)
	// until reports whether the pod can be deleted. `all` holds all observed versions of the pod.
	until func(all []stamped) bool
}

// Names of the nodes that evict pods, and the kubelet setting that makes them do so.
const (
	pressedReal      = "real-1"
	pressedSimulated = "simulated-1"
	// pressure is a kubelet setting under which the kubelet sees memory pressure. It then evicts one pod every 10 s,
	// among the pods that use more memory than they requested.
	pressure = `evictionHard: {memory.available: 99%}`
)

// evicts reports whether the node evicts the pod of the case. Such cases have separate nodes, because the real node is
// under memory pressure from its start.
func (c lifeCase) evicts() bool { return c.life.Evict != scenario.Eviction{} }

// nodes returns the real node and the simulated node of a case.
func (c lifeCase) nodes() [2]string {
	if c.evicts() {
		return [2]string{pressedReal, pressedSimulated}
	}
	return [2]string{realNode, simulatedNode}
}

// absentImage is an image that no node has and whose registry refuses connections immediately.
const absentImage = "127.0.0.1:1/absent:1"

const grace = 2 * time.Second

func fixed(d time.Duration) scenario.Spread { return scenario.Spread{Median: d, P99: d} }

func lifeCases() []lifeCase {
	always := corev1.ContainerRestartPolicyAlways
	second := fixed(2 * time.Second)
	ends := scenario.ContainerRun{RunFor: second}
	fails := scenario.ContainerRun{RunFor: second, ExitCode: 1}
	args := func(policy corev1.RestartPolicy, args ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.RestartPolicy, p.Spec.Containers[0].Args = policy, args }
	}
	probe := &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 3, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)}}}
	stuck := scenario.PodLife{LivenessFailsAfter: fixed(6 * time.Second), StopAfter: fixed(time.Minute)}
	fails4s := func(policy corev1.RestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			args(policy, "--probes", ":8080", "--fail-after", "4s", "--deaf")(p)
			p.Spec.Containers[0].LivenessProbe = probe
		}
	}
	image := func(policy corev1.PullPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = absentImage, policy
		}
	}
	cases := []lifeCase{
		{"completes", "exit code 0, restartPolicy Never", scenario.PodLife{ContainerRun: ends},
			args(corev1.RestartPolicyNever, "--after", "2s"), inPhase(corev1.PodSucceeded)},
		{"fails", "exit code 1, restartPolicy Never", scenario.PodLife{ContainerRun: fails},
			args(corev1.RestartPolicyNever, "--after", "2s", "--code", "1"), inPhase(corev1.PodFailed)},
		{"completes-on-failure", "exit code 0, restartPolicy OnFailure", scenario.PodLife{ContainerRun: ends},
			args(corev1.RestartPolicyOnFailure, "--after", "2s"), inPhase(corev1.PodSucceeded)},
		{"crashes-on-failure", "exit code 1, restartPolicy OnFailure, to its second restart", scenario.PodLife{ContainerRun: fails},
			args(corev1.RestartPolicyOnFailure, "--after", "2s", "--code", "1"), restarted(2)},
		{"crashes", "exit code 1, restartPolicy Always, to its fourth restart", scenario.PodLife{ContainerRun: fails},
			args(corev1.RestartPolicyAlways, "--after", "2s", "--code", "1"), restarted(4)},
		{"completes-always", "exit code 0, restartPolicy Always, to its second restart", scenario.PodLife{ContainerRun: ends},
			args(corev1.RestartPolicyAlways, "--after", "2s"), restarted(2)},
		{"deleted-in-back-off", "deleted while it backs off", scenario.PodLife{ContainerRun: fails},
			args(corev1.RestartPolicyAlways, "--after", "2s", "--code", "1"), backingOff(3 * time.Second)},
		{"unready", "readiness probe fails for 6 s", scenario.PodLife{ReadinessFailsAfter: fixed(8 * time.Second), ReadinessFailsFor: fixed(4 * time.Second)},
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Args = []string{"--probes", ":8080", "--answer-after", "500ms", "--fail-after", "7s", "--fail-for", "6s"}
				p.Spec.Containers[0].ReadinessProbe = probe
			}, readyTwice},
		{"stuck", "liveness probe fails, to the first restart", stuck, fails4s(corev1.RestartPolicyAlways), restarted(1)},
		{"stuck-once", "liveness probe fails, restartPolicy Never", stuck, fails4s(corev1.RestartPolicyNever), inPhase(corev1.PodFailed)},
		{"never-pulled", "image absent, imagePullPolicy Never, for 30 s", scenario.PodLife{ImagePullErrorFor: fixed(24 * time.Hour)},
			image(corev1.PullNever), aged(30 * time.Second)},
		{"unpullable", "image absent, to the third ErrImagePull", scenario.PodLife{ImagePullErrorFor: fixed(24 * time.Hour)},
			image(corev1.PullIfNotPresent), waited("ErrImagePull", 3)},
		{"out-of-memory", "over its memory limit, restartPolicy Never",
			scenario.PodLife{ContainerRun: scenario.ContainerRun{RunFor: second, Reason: scenario.OOMKilled}},
			func(p *corev1.Pod) {
				args(corev1.RestartPolicyNever, "--after", "2s", "--allocate", "512")(p)
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
			}, inPhase(corev1.PodFailed)},
		{"initializes", "two init containers of 2 s", scenario.PodLife{Init: ends}, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{container("first", "--after", "2s"), container("second", "--after", "2s")}
		}, ready},
		{"init-crashes", "init container fails, restartPolicy Always, to its second restart", scenario.PodLife{Init: fails}, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{container("first", "--after", "2s", "--code", "1")}
		}, restarted(2)},
		{"init-fails", "init container fails, restartPolicy Never", scenario.PodLife{Init: fails}, func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Spec.InitContainers = []corev1.Container{container("first", "--after", "2s", "--code", "1")}
		}, inPhase(corev1.PodFailed)},
		{"sidecar", "exit code 0 with a sidecar, restartPolicy Never", scenario.PodLife{ContainerRun: ends}, func(p *corev1.Pod) {
			args(corev1.RestartPolicyNever, "--after", "2s")(p)
			sidecar := container("sidecar")
			sidecar.RestartPolicy = &always
			p.Spec.InitContainers = []corev1.Container{sidecar}
		}, inPhase(corev1.PodSucceeded)},
		{"one-of-two", "one container of two fails, restartPolicy Never", scenario.PodLife{ContainerRun: fails, Container: "b"}, func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Spec.Containers = append(p.Spec.Containers, container("b", "--after", "2s", "--code", "1"))
		}, ended("b")},
		{"deaf", "deleted, and killed after its grace period", scenario.PodLife{StopAfter: fixed(time.Minute)},
			args(corev1.RestartPolicyAlways, "--deaf"), ready},
		{"late", "readiness probe succeeds after 5 s", scenario.PodLife{ReadyAfter: fixed(5 * time.Second)}, func(p *corev1.Pod) {
			p.Spec.Containers[0].Args = []string{"--probes", ":8080", "--fail-after", "1ms", "--fail-for", "5s"}
			p.Spec.Containers[0].ReadinessProbe = probe
		}, ready},
	}
	evicted := scenario.PodLife{Evict: scenario.Eviction{After: fixed(5 * time.Second), Condition: string(corev1.NodeMemoryPressure), For: scenario.Duration(5 * time.Minute)}}
	deaf := evicted
	deaf.StopAfter = fixed(time.Minute)
	asksMemory := func(args ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Args = args
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}
		}
	}
	return append(cases,
		lifeCase{"evicted", "evicted by a kubelet that is short of memory", evicted, asksMemory(), finished},
		lifeCase{"evicted-deaf", "evicted, and killed after its grace period", deaf, asksMemory("--deaf"), finished},
	)
}

func (c lifeCase) pod(node string) *corev1.Pod {
	seconds := int64(grace.Seconds())
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("a")}, TerminationGracePeriodSeconds: &seconds, NodeName: node}}
	p.Namespace, p.Name = namespace, c.podName(node)
	p.Annotations = map[string]string{scenario.PodLifeAnnotation: c.name}
	c.change(p)
	return p
}

func (c lifeCase) podName(node string) string { return node + "-" + c.name }

func last(all []stamped) *corev1.Pod { return all[len(all)-1].pod }

func inPhase(want corev1.PodPhase) func([]stamped) bool {
	return func(all []stamped) bool { return last(all).Status.Phase == want }
}

func finished(all []stamped) bool {
	return inPhase(corev1.PodFailed)(all) || inPhase(corev1.PodSucceeded)(all)
}

func ready(all []stamped) bool { return conditionTrue(last(all), corev1.PodReady) }

// readyTwice reports whether a pod is Ready again after it had stopped being Ready.
func readyTwice(all []stamped) bool {
	times, was := 0, false
	for _, s := range all {
		is := conditionTrue(s.pod, corev1.PodReady)
		if is && !was {
			times++
		}
		was = is
	}
	return was && times >= 2
}

// aged returns a function that reports whether more than d has passed since the pod was first seen.
func aged(d time.Duration) func([]stamped) bool {
	return func(all []stamped) bool { return time.Since(all[0].at) > d }
}

func anyStatus(p *corev1.Pod, f func(corev1.ContainerStatus) bool) bool {
	for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		if f(s) {
			return true
		}
	}
	return false
}

// restarted returns a function that reports whether a container is running after at least the given number of restarts.
func restarted(times int32) func([]stamped) bool {
	return func(all []stamped) bool {
		return anyStatus(last(all), func(s corev1.ContainerStatus) bool { return s.RestartCount >= times && s.State.Running != nil })
	}
}

// backingOff returns a function that reports whether a restarted container is not running and the status of the pod has
// not changed for more than d.
func backingOff(d time.Duration) func([]stamped) bool {
	return func(all []stamped) bool {
		return time.Since(all[len(all)-1].at) > d && anyStatus(last(all), func(s corev1.ContainerStatus) bool {
			return s.RestartCount > 0 && s.State.Running == nil
		})
	}
}

// waited returns a function that counts how often a container has entered the state Waiting with the given reason. It
// reports whether this happened at least the given number of times.
func waited(reason string, times int) func([]stamped) bool {
	return func(all []stamped) bool {
		n, was := 0, false
		for _, s := range all {
			is := anyStatus(s.pod, func(s corev1.ContainerStatus) bool { return s.State.Waiting != nil && s.State.Waiting.Reason == reason })
			if is && !was {
				n++
			}
			was = is
		}
		return n >= times
	}
}

// ended returns a function that reports whether a container has terminated. The pod may still be running.
func ended(name string) func([]stamped) bool {
	return func(all []stamped) bool {
		return anyStatus(last(all), func(s corev1.ContainerStatus) bool { return s.Name == name && s.State.Terminated != nil })
	}
}
