// Package cluster prepares the cluster that a run loads. At the end it removes the run's objects, found by label. The
// cluster is either a bundled control plane, which Stormglass starts for the run, or a user's own cluster.
package cluster

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/objects"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// RunLabel is the label of every object that a run creates. Its value is the run's ID.
	RunLabel = objects.RunLabel
	// SimulatedTaint is the key of the taint that keeps other pods off simulated nodes.
	SimulatedTaint = "stormglass.dev/simulated"
	// ManagedByLabel is the customary label for the tool that manages an object.
	ManagedByLabel = "app.kubernetes.io/managed-by"
)

// Labels returns the labels of everything that a run creates, including nodes.
func Labels(runID string) map[string]string { return map[string]string{RunLabel: runID} }

// meta returns the metadata of an object that Setup creates, with the run's labels and ManagedByLabel.
func (t *Target) meta(name string) metav1.ObjectMeta {
	labels := maps.Clone(t.Labels)
	labels[ManagedByLabel] = "stormglass"
	return metav1.ObjectMeta{Name: name, Labels: labels}
}

// Taints returns the taints of simulated nodes. Only the run's pods tolerate them. Nodes have no taints if the run only
// simulates nodes on a Stormglass control plane, so that ordinary Deployments run there.
func (t *Target) Taints() []corev1.Taint {
	if t.NodesAlone && t.own {
		return nil
	}
	return []corev1.Taint{{Key: SimulatedTaint, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
}

// Placement returns YAML lines for a pod's spec. They make the scheduler place the pod on the run's nodes.
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

// PoolTolerations returns tolerations for the taints of all pools of nodes.
func PoolTolerations(n scenario.Nodes) (all []corev1.Toleration) {
	for _, t := range n.Taints() {
		all = append(all, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return all
}

// NodeSelector returns the node selector of the run's pods. It selects only the run's nodes.
func (t *Target) NodeSelector() map[string]string {
	return map[string]string{RunLabel: t.Labels[RunLabel]}
}

// ownedBy returns the label selector for the objects of a run, or of every run if runID is "".
func ownedBy(runID string) string { return selector(RunLabel, runID) }

// selector returns a label selector for the id of a run. With runID "" it selects every object that has the label.
func selector(label, runID string) string {
	if runID == "" {
		return label
	}
	return label + "=" + runID
}
