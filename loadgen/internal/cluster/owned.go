// Package cluster opens the target of a run, a bundled control plane or a user's own
// cluster: it checks and prepares it, and afterwards removes what the run made, by label.
package cluster

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// RunLabel is the label with the run's id on every object that a run creates. Cleanup finds the objects only by
	// this label. It is not a label of kubernetes.io, because the NodeRestriction admission plugin lets kubelets set
	// few of those.
	RunLabel = "stormglass.dev/run"
	// SimulatedTaint keeps pods that do not tolerate it off simulated nodes.
	SimulatedTaint = "stormglass.dev/simulated"
	// ManagedByLabel is the customary label for the tool that manages an object.
	ManagedByLabel = "app.kubernetes.io/managed-by"
)

// Labels returns the labels of everything that a run creates, including nodes.
func Labels(runID string) map[string]string { return map[string]string{RunLabel: runID} }

// meta returns the metadata of an object made by Setup, with ManagedByLabel.
func (t *Target) meta(name string) metav1.ObjectMeta {
	labels := maps.Clone(t.Labels)
	labels[ManagedByLabel] = "stormglass"
	return metav1.ObjectMeta{Name: name, Labels: labels}
}

// Taints returns the taints of simulated nodes, which keep off all pods except the run's. Nodes that run alone on a
// Stormglass control plane have no taints, so that a plain Deployment runs there.
func (t *Target) Taints() []corev1.Taint {
	if t.NodesAlone && t.own {
		return nil
	}
	return []corev1.Taint{{Key: SimulatedTaint, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
}

// Placement returns lines of YAML for the spec of a pod, which place the pod on the run's nodes.
func (t *Target) Placement() []string {
	lines := []string{fmt.Sprintf("nodeSelector: {%s: %q}", RunLabel, t.Labels[RunLabel])}
	if len(t.Taints()) > 0 {
		lines = append([]string{fmt.Sprintf("tolerations: [{key: %s, operator: Equal, value: \"true\", effect: NoSchedule}]", SimulatedTaint)}, lines...)
	}
	return lines
}

// Tolerations returns the tolerations of the run's pods for Taints.
func Tolerations() []corev1.Toleration {
	return []corev1.Toleration{{
		Key: SimulatedTaint, Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule,
	}}
}

// NodeSelector returns the node selector of the run's pods, which selects only the run's nodes.
func (t *Target) NodeSelector() map[string]string {
	return map[string]string{RunLabel: t.Labels[RunLabel]}
}

// ownedBy returns the label selector for what a run made; "" means every run.
func ownedBy(runID string) string { return selector(RunLabel, runID) }

// selector returns a label selector for the id of a run. With runID "" it selects every object that has the label.
func selector(label, runID string) string {
	if runID == "" {
		return label
	}
	return label + "=" + runID
}
