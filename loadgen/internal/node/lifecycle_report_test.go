package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestLifeGoesOnAfterANodesRecovery(t *testing.T) {
	l := startLiving(t, Lean, crashing(time.Hour))
	l.bind("sg-0", "web", nil)
	l.awaitPod("web", "Running, ready, running")
	l.clock.Step(time.Hour)
	l.awaitPod("web", "Running, ready, running x1 after Error(1)")
	l.fleet.Fail(1)
	l.changePod("web", func(p *corev1.Pod) { condition(p, corev1.PodReady).Status = corev1.ConditionFalse })
	l.clock.Step(30 * time.Minute)
	must(t, l.fleet.Recover())
	l.awaitPod("web", "Running, ready, running x1 after Error(1)")
	eventually(t, "it runs", func() bool { return l.fleet.Live().PodsRunning == 1 })
	l.clock.Step(30 * time.Minute)
	l.awaitPod("web", "Running, ready, running x2 after Error(1)")
}

// If the node lifecycle controller makes an adopted pod not Ready, the kubelet makes the pod Ready again.
func TestAdoptedPodIsRepaired(t *testing.T) {
	l := startLiving(t, Lean, crashing(time.Hour))
	l.bind("sg-0", "web", nil)
	l.awaitPod("web", "Running, ready, running")
	l.fleet.Fail(1)
	must(t, l.fleet.Recover())
	eventually(t, "it is taken over", func() bool { return l.fleet.Live().PodsRunning == 1 })
	l.changePod("web", func(p *corev1.Pod) { condition(p, corev1.PodReady).Status = corev1.ConditionFalse })
	l.awaitPod("web", "Running, ready, running")
}
