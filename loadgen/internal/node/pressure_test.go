package node

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestEvictionUnderPressure(t *testing.T) {
	l := startLiving(t, Lean, scenario.PodLife{
		Name: "hungry", Match: scenario.PodMatch{Owner: "ReplicaSet"}, StopAfter: fixed(time.Minute),
		Evict: scenario.Eviction{After: fixed(30 * time.Second), Condition: "MemoryPressure", For: scenario.Duration(time.Minute)},
	})
	pressure := func() corev1.NodeCondition {
		for _, c := range l.nodes["sg-0"].Status.Conditions {
			if c.Type == corev1.NodeMemoryPressure {
				return c
			}
		}
		return corev1.NodeCondition{}
	}
	priority := int32(systemCritical)
	l.bind("sg-0", "web", ownedBy("ReplicaSet"))
	l.bind("sg-0", "critical", func(p *corev1.Pod) {
		ownedBy("ReplicaSet")(p)
		p.Spec.Priority = &priority
	})
	l.awaitPod("web", "Running, ready, running")
	l.awaitPod("critical", "Running, ready, running")
	l.clock.Step(30 * time.Second)
	l.await("the Event", func() bool { return slices.Contains(l.told("web"), "Killing") })
	l.awaitPod("web", "Running, ready, running")
	l.clock.Step(minGrace)
	l.awaitPod("web", "Failed/Evicted, Error(137)")
	l.locked(func() {
		p := l.pods["web"]
		if c := condition(p, corev1.DisruptionTarget); c == nil || c.Reason != corev1.PodReasonTerminationByKubelet || p.Status.Message != "The node was low on resource: memory. " {
			t.Errorf("message %q, condition %+v", p.Status.Message, c)
		}
	})
	l.bind("sg-0", "refused", nil)
	l.awaitPod("refused", "Failed/Evicted")
	l.bind("sg-0", "burstable", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	})
	l.awaitPod("burstable", "Running, ready, running")
	l.clock.Step(statusUpdate)
	l.await("the node says so", func() bool {
		return pressure().Status == corev1.ConditionTrue && l.readiness("sg-0").Status == corev1.ConditionTrue
	})
	l.clock.Step(time.Minute - statusUpdate)
	l.await("the pressure is over", func() bool { return pressure().Status == corev1.ConditionFalse })
	l.bind("sg-0", "welcome", nil)
	l.awaitPod("welcome", "Running, ready, running")
	l.awaitPod("critical", "Running, ready, running")
	if evicted, rejected := l.happened("hungry", lifeEvicted), l.happened("hungry", lifeRejected); evicted != 1 || rejected != 1 {
		t.Errorf("%d evicted, %d rejected", evicted, rejected)
	}
}

func TestEvictedPodThatObeysSucceeds(t *testing.T) {
	l := startLiving(t, Lean, scenario.PodLife{
		Name: "hungry", Evict: scenario.Eviction{After: fixed(30 * time.Second), Condition: "MemoryPressure", For: scenario.Duration(time.Minute)},
	})
	l.bind("sg-0", "web", nil)
	l.awaitPod("web", "Running, ready, running")
	l.clock.Step(30 * time.Second)
	l.awaitPod("web", "Succeeded, Completed(0)")
	l.locked(func() {
		if c := condition(l.pods["web"], corev1.DisruptionTarget); c == nil || c.Reason != corev1.PodReasonTerminationByKubelet {
			t.Errorf("condition %+v", c)
		}
	})
	eventually(t, "it does not run", func() bool { return l.fleet.Live().PodsRunning == 0 })
}
