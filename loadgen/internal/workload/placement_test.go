package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func TestPodsKeepApartAsAsked(t *testing.T) {
	w := newStub(t).workload()
	for how, want := range map[string][2]int{"": {0, 0}, "preferred": {1, 0}, "required": {0, 1}} {
		pod, err := w.template(scenario.Action{Kind: "deploy", Name: "web", AntiAffinity: how}, "1")
		if err != nil {
			t.Fatal(err)
		}
		anti := &corev1.PodAntiAffinity{}
		if a := pod.Spec.Affinity; a != nil {
			anti = a.PodAntiAffinity
		}
		got := [2]int{len(anti.PreferredDuringSchedulingIgnoredDuringExecution), len(anti.RequiredDuringSchedulingIgnoredDuringExecution)}
		if got != want {
			t.Errorf("antiAffinity %q: %v preferred and required terms, want %v", how, got, want)
		}
		for _, term := range anti.RequiredDuringSchedulingIgnoredDuringExecution {
			if term.TopologyKey != "kubernetes.io/hostname" || term.LabelSelector.MatchLabels[DeploymentLabel] != "web" {
				t.Errorf("the term does not select the Deployment's own pods with topology key kubernetes.io/hostname: %+v", term)
			}
		}
	}
}

func TestSpreadConstraintsAreHardUnlessSoft(t *testing.T) {
	pod, err := newStub(t).workload().template(scenario.Action{Kind: "deploy", Name: "web", TopologySpread: []scenario.TopologySpread{
		{Key: "topology.kubernetes.io/zone"}, {Key: "kubernetes.io/hostname", MaxSkew: 3, Soft: true},
	}}, "1")
	if err != nil {
		t.Fatal(err)
	}
	got := pod.Spec.TopologySpreadConstraints
	if len(got) != 2 || got[0].WhenUnsatisfiable != corev1.DoNotSchedule || got[0].MaxSkew != 1 ||
		got[1].WhenUnsatisfiable != corev1.ScheduleAnyway || got[1].MaxSkew != 3 || got[1].TopologyKey != "kubernetes.io/hostname" {
		t.Errorf("got %+v", got)
	}
	for _, c := range got {
		if c.LabelSelector.MatchLabels[DeploymentLabel] != "web" {
			t.Errorf("a constraint also counts pods of other Deployments: %+v", c)
		}
	}
}
