package workload

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// kindOf converts the name of a workload's kind, such as scenario.Deployment, to this package's kind.
func kindOf(workload string) kind {
	return map[string]kind{
		scenario.Deployment: deploymentKind, scenario.StatefulSet: statefulSetKind, scenario.DaemonSet: daemonSetKind,
		scenario.Job: jobKind, scenario.CronJob: cronJobKind,
	}[workload]
}

// served reports whether a deploy action creates a Service. A StatefulSet always has a (headless) Service.
func served(a scenario.Action) bool {
	return a.Service || a.Kind == "deploy" && a.WorkloadKind() == scenario.StatefulSet
}

// object returns the workload that a deploy action applies. Fields that are not set get the defaults of Kubernetes.
func (w *Workload) object(a scenario.Action, revision string) (runtime.Object, error) {
	pod, err := w.template(a, revision)
	if err != nil {
		return nil, err
	}
	replicas, selector := int32(a.Replicas), &metav1.LabelSelector{MatchLabels: pod.Labels}
	meta := metav1.ObjectMeta{Name: a.Name, Namespace: w.options.Namespace, Labels: pod.Labels}
	typed := func(group string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: group + "/v1", Kind: a.WorkloadKind()}
	}
	switch a.WorkloadKind() {
	case scenario.StatefulSet:
		return &appsv1.StatefulSet{TypeMeta: typed("apps"), ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: selector, Template: pod, ServiceName: a.Name,
			PodManagementPolicy: appsv1.PodManagementPolicyType(a.PodManagementPolicy),
		}}, nil
	case scenario.DaemonSet:
		return &appsv1.DaemonSet{TypeMeta: typed("apps"), ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: pod}}, nil
	case scenario.Job:
		return &batchv1.Job{TypeMeta: typed("batch"), ObjectMeta: meta, Spec: jobSpec(a, pod)}, nil
	case scenario.CronJob:
		return &batchv1.CronJob{TypeMeta: typed("batch"), ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			Schedule: cron(a.Every.D()), ConcurrencyPolicy: batchv1.ConcurrencyPolicy(a.ConcurrencyPolicy),
			JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: jobSpec(a, pod)},
		}}, nil
	}
	return &appsv1.Deployment{TypeMeta: typed("apps"), ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Strategy: strategy(a), Selector: selector, Template: pod,
	}}, nil
}

func jobSpec(a scenario.Action, pod corev1.PodTemplateSpec) batchv1.JobSpec {
	replicas := int32(a.Replicas)
	pod.Annotations[scenario.ExitAfterAnnotation] = a.RunFor.D().String()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	spec := batchv1.JobSpec{Parallelism: &replicas, Completions: &replicas, Template: pod}
	if a.BackoffLimit > 0 {
		spec.BackoffLimit = new(int32(a.BackoffLimit))
	}
	return spec
}

// cron returns a cron schedule that repeats at the given interval, aligned to the hour. Intervals of more than an hour
// become one hour.
func cron(every time.Duration) string {
	if every >= time.Hour {
		return "0 * * * *"
	}
	return fmt.Sprintf("*/%d * * * *", int(every.Minutes()))
}

func (d *deployment) workload() string {
	if d.deploy == nil {
		return scenario.Deployment
	}
	return d.deploy.WorkloadKind()
}
