package workload

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// TestAutoscaledDeploymentIsReadyWhenItMeetsDemand: an autoscaler tolerates a deviation of a tenth from its target, and
// adds pods in several steps.
func TestAutoscaledDeploymentIsReadyWhenItMeetsDemand(t *testing.T) {
	s := newStory(t)
	deploy := scenario.Action{Kind: "deploy", Name: "web", Replicas: 1, CPU: "500m", Autoscale: scenario.Autoscale{Min: 1, Max: 50, Utilization: 50}}
	s.of("web").deploy = &deploy
	s.want("web", 1, "1")
	s.accepted("web", 1, s.at)
	s.pod("a", "n1")
	s.status(1, 1)
	if !s.allPodsReady() {
		t.Fatal("not ready without any demand")
	}
	s.demanded("web", "750m", s.at) // three pods that use half of their request
	if s.allPodsReady() || s.liveNow().PodsWanted != 3 {
		t.Errorf("ready with 1 pod, or %d pods wanted; want 3", s.liveNow().PodsWanted)
	}
	scale := func(replicas, generation int64) {
		s.at = s.at.Add(time.Second)
		s.saw(object{kind: deploymentKind, name: "web", uid: "d", deployment: "web", generation: generation, specReplicas: replicas, observed: generation,
			replicas: replicas, updated: replicas, available: replicas}, s.at, false)
	}
	scale(2, 2)
	s.pod("b", "n1")
	if s.allPodsReady() {
		t.Error("the Deployment is ready with 2 of 3 pods")
	}
	scale(4, 3)
	s.pod("c", "n1")
	s.pod("d", "n1")
	if !s.allPodsReady() || s.liveNow().PodsWanted != 4 {
		t.Errorf("not ready with one pod too many: wanted %d", s.liveNow().PodsWanted)
	}
	rollouts := s.results()["one"].Rollouts
	if r := rollouts[len(rollouts)-1]; r.Action != "demand" || !r.Complete || r.Hops[hopAPIWrite].Count != 2 || r.Hops[hopReady].Count < 2 {
		t.Errorf("rollout %+v", r)
	}
}

// TestReadyPodsShareDemand checks the CPU use of a pod while other pods join it.
func TestReadyPodsShareDemand(t *testing.T) {
	d := demand{cores: 6}
	at := time.Unix(0, 0)
	d.count(at, 1)
	d.count(at.Add(10*time.Second), 3)
	d.count(at.Add(20*time.Second), 3)
	if d.each != 2 || d.seconds != 80 {
		t.Errorf("a pod uses %v cores and has used %v s; want 2 and 6x10+2x10", d.each, d.seconds)
	}
}
