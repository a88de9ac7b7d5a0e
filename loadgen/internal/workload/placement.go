package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	antiAffinityPreferred = "preferred"
	antiAffinityRequired  = "required"
)

// place says where a Deployment's pods may run in relation to each other.
func place(pod *corev1.PodSpec, a scenario.Action, labels map[string]string) {
	own := &metav1.LabelSelector{MatchLabels: labels}
	apart := corev1.PodAffinityTerm{LabelSelector: own, TopologyKey: corev1.LabelHostname}
	switch a.AntiAffinity {
	case antiAffinityPreferred:
		pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: apart}},
		}}
	case antiAffinityRequired:
		pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{apart},
		}}
	}
	for _, s := range a.TopologySpread {
		c := corev1.TopologySpreadConstraint{
			TopologyKey: s.Key, MaxSkew: int32(max(1, s.MaxSkew)), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own,
		}
		if s.Soft {
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		}
		pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, c)
	}
}
