package job

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
)

func (o Options) tolerations() (all []corev1.Toleration, err error) {
	if o.Tolerations == "" {
		return nil, nil
	}
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	for item := range strings.SplitSeq(o.Tolerations, ",") {
		taint, effect, _ := strings.Cut(item, ":")
		key, value, equal := strings.Cut(taint, "=")
		if equal && value == "" || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 || !slices.Contains(effects, corev1.TaintEffect(effect)) {
			return nil, fmt.Errorf("--workers-tolerations %q: %q is not a taint (write KEY=VALUE:NoSchedule,KEY:NoSchedule,KEY)", o.Tolerations, item)
		}
		t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
		if equal {
			t.Operator, t.Value = corev1.TolerationOpEqual, value
		}
		all = append(all, t)
	}
	return all, nil
}

// place sets the image pull secret and the scheduling fields of a pod from the options. It excludes simulated nodes,
// because these run no containers.
func (o Options) place(pod *corev1.PodSpec) (err error) {
	if o.PullSecret != "" {
		pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: o.PullSecret}}
	}
	if pod.NodeSelector, err = o.nodeSelector(); err != nil {
		return err
	}
	if pod.Tolerations, err = o.tolerations(); err != nil {
		return err
	}
	pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: cluster.RunLabel, Operator: corev1.NodeSelectorOpDoesNotExist},
		}}},
	}}}
	return nil
}

// limit sets the resource requests of a container. The memory limit equals the memory request.
func limit(c *corev1.Container, requests corev1.ResourceList) {
	c.Resources.Requests = requests
	if memory, ok := requests[corev1.ResourceMemory]; ok {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: memory}
		c.Env = append(c.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: fmt.Sprint(memory.Value() * 9 / 10)})
	}
}
