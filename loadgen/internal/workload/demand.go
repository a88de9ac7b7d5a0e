package workload

import (
	"context"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// demand is the CPU demand on a Deployment. The Deployment's Ready pods share it evenly.
type demand struct {
	cores   float64
	each    float64 // current usage per pod, in cores
	seconds float64 // CPU seconds used so far by a pod that has existed since the first demand
	at      time.Time
}

// count adds the CPU time that each pod has used up to now, and then sets the number of pods that share the demand to
// `pods`.
func (d *demand) count(now time.Time, pods int64) {
	if !d.at.IsZero() {
		d.seconds += d.each * max(0, now.Sub(d.at).Seconds())
	}
	d.at, d.each = now, d.cores/float64(max(pods, 1))
}

// countDemands updates all demands after the number of pods has changed.
func (w *Workload) countDemands(now time.Time) {
	for name, d := range w.demands {
		d.count(now, w.tracker.of(name).good)
	}
}

// Use returns the CPU use of a pod with these labels: cores is its current use, and seconds is the CPU time that it has
// used so far. ok is false if the pod's Deployment has no demand.
func (w *Workload) Use(labels map[string]string) (cores, seconds float64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.demands[labels[DeploymentLabel]]
	if d == nil {
		return 0, 0, false
	}
	d.count(time.Now(), w.tracker.of(labels[DeploymentLabel]).good)
	return d.each, d.seconds, true
}

// demand sets the CPU demand of a Deployment. If the Deployment has an autoscaler, the autoscaler reacts to the demand.
func (w *Workload) demand(a scenario.Action) error {
	q, err := resource.ParseQuantity(a.CPU)
	if err != nil {
		return err
	}
	w.change(func(t *tracker) {
		d := w.demands[a.Name]
		if d == nil {
			d = &demand{}
			w.demands[a.Name] = d
		}
		d.cores = q.AsApproximateFloat64()
		t.demanded(a.Name, a.CPU, time.Now())
	})
	return nil
}

func (w *Workload) autoscaler(ctx context.Context, a scenario.Action) error {
	least, target := int32(a.Autoscale.Min), int32(a.Autoscale.Utilization)
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: w.options.Namespace, Labels: w.labels(a.Name)},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: a.Name},
			MinReplicas:    &least, MaxReplicas: int32(a.Autoscale.Max),
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name:   corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &target},
				},
			}},
		},
	}
	_, err := w.patch(ctx, autoscalerKind, a.Name, types.ApplyPatchType, hpa)
	return err
}

// demanded records how many pods an autoscaled Deployment needs for a new CPU demand. If the Deployment needs more pods
// than its current replicas, demanded begins a rollout, which is over when enough pods are Ready. For a Deployment
// without an autoscaler it does nothing.
func (t *tracker) demanded(name, cpu string, at time.Time) {
	d := t.of(name)
	if d.deploy == nil || !d.deploy.Autoscales() {
		return
	}
	needed := d.deploy.Autoscale.Needed(cpu, d.deploy.CPU)
	t.scaled(d, d.replicas, int64(needed))
	d.enough = int64(d.deploy.Autoscale.Enough(needed))
	if pods := d.enough - d.replicas; pods > 0 {
		t.begin(name, "demand", pods, d.revision, false, at)
	}
}

// sawScale processes a change of a Deployment's spec.replicas by an autoscaler.
func (t *tracker) sawScale(d *deployment, o object, at time.Time) {
	if d.deploy == nil || !d.deploy.Autoscales() || d.generation == deleted || o.generation < d.generation || o.specReplicas == d.replicas {
		return
	}
	if r := d.rollout; r != nil && !r.over && r.action == "demand" {
		r.hops[hopAPIWrite].add(at)
	}
	t.scaled(d, o.specReplicas, d.needed)
}

// scaled stores the requested replicas of a Deployment, and the replicas that its CPU demand needs.
func (t *tracker) scaled(d *deployment, replicas, needed int64) {
	d.replicas, d.needed = replicas, needed
}
