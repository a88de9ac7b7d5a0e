package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/stormglass/stormglass/loadgen/internal/manifest"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// cleanupLabel is the label of a run's cleanup Job and of the objects that this Job needs. Its value is the run's
	// ID. Cleanup removes these objects last.
	cleanupLabel = "stormglass.dev/cleanup-of"
	// cleanupName is the name of a cleanup Job or CronJob, and of the objects that it needs.
	cleanupName = "stormglass-cleanup"
)

// CleanupOptions configure the Job or CronJob that cleans up inside a cluster.
type CleanupOptions struct {
	// Image is an image with the program loadgen as its entry point.
	Image string
	// Namespace is the namespace of the Job or CronJob and of its ServiceAccount. The method Objects also returns the
	// Namespace object.
	Namespace string
	// Schedule is the schedule of a CronJob that removes the objects of runs whose deadline has passed. Empty means a
	// Job that removes them once.
	Schedule string

	run   string                  // ID of the run that the Job waits for; empty: the Job does not wait
	owner []metav1.OwnerReference // owner of the objects that are not in Namespace
}

// Check returns an error for invalid options. The error names the flags that set them.
func (o CleanupOptions) Check() error {
	errs := []error{manifest.CheckImage(o.Image), manifest.CheckNamespace("namespace", o.Namespace)}
	if n := len(strings.Fields(o.Schedule)); n != 0 && n != 5 && !strings.HasPrefix(o.Schedule, "@") {
		errs = append(errs, fmt.Errorf("--schedule %q is not a cron schedule (write five fields, such as */10 * * * *)", o.Schedule))
	}
	return errors.Join(errs...)
}

// cleanupNeeds returns the permissions to find and remove the objects that runs left. They do not cover other
// cluster-scoped kinds that a scenario may create from templates.
func cleanupNeeds() []need {
	needs := slices.Concat(
		each("list delete", "", "namespaces", ""),
		each("list delete", "", "nodes", ""),
		each("list delete", "", "pods", ""),
		each("list delete", "coordination.k8s.io", "leases", leaseNamespace),
		each("list delete", "coordination.k8s.io", "leases", lockNamespace),
		each("list delete", "storage.k8s.io", "csinodes", ""),
		each("list delete", resourceGroup, "resourceslices", ""),
		each("list delete", resourceGroup, "deviceclasses", ""),
		each("list deletecollection", "", "events", metav1.NamespaceDefault),
		each("list delete", "certificates.k8s.io", "certificatesigningrequests", ""),
		each("list delete", rbacv1.GroupName, "clusterroles", ""),
		each("list delete", rbacv1.GroupName, "clusterrolebindings", ""),
		each("list delete", definitionsGroup, definitions, ""),
		[]need{{verb: "get", url: "/version"}},
	)
	for _, k := range scenario.Creatables() {
		if !k.Namespaced && !k.Defines() {
			needs = append(needs, each("list delete", k.Resource.Group, k.Resource.Resource, "")...)
		}
	}
	return needs
}

// Objects returns the cleanup Job or CronJob and the objects that it needs, in the order in which to create them.
func (o CleanupOptions) Objects() []runtime.Object {
	named := func(namespace, name string, owned bool) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{ManagedByLabel: "stormglass"}}
		if o.run != "" {
			m.Labels[cleanupLabel] = o.run
		}
		if owned {
			m.OwnerReferences = o.owner
		}
		return m
	}
	name := cleanupName
	if o.run != "" {
		name = o.Namespace // the name is unique in the cluster
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: cleanupName, Namespace: o.Namespace}}
	all := []runtime.Object{
		manifest.Namespace(named("", o.Namespace, false)),
		&corev1.ServiceAccount{TypeMeta: manifest.Type("v1", "ServiceAccount"), ObjectMeta: named(o.Namespace, cleanupName, false)},
	}
	all = append(all, rulesOf(cleanupNeeds()).Objects(name, subjects, func(namespace string) metav1.ObjectMeta { return named(namespace, name, true) })...)
	job := o.job()
	if o.Schedule == "" {
		return append(all, &batchv1.Job{TypeMeta: manifest.Type("batch/v1", "Job"), ObjectMeta: named(o.Namespace, cleanupName, false), Spec: job})
	}
	return append(all, &batchv1.CronJob{TypeMeta: manifest.Type("batch/v1", "CronJob"), ObjectMeta: named(o.Namespace, cleanupName, false), Spec: batchv1.CronJobSpec{
		Schedule: o.Schedule, ConcurrencyPolicy: batchv1.ForbidConcurrent, JobTemplate: batchv1.JobTemplateSpec{Spec: job},
		SuccessfulJobsHistoryLimit: new(int32(1)), FailedJobsHistoryLimit: new(int32(1)), StartingDeadlineSeconds: new(int64(600)),
	}})
}

// job returns the spec of a Job that runs `loadgen cleanup` in a pod that meets the profile "restricted" of Pod
// Security.
func (o CleanupOptions) job() batchv1.JobSpec {
	args := []string{"cleanup", "--current-cluster", "--yes", "--expired"}
	if o.run != "" {
		args = append(args, "--wait", "--run="+o.run)
	}
	quantity := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	pod := manifest.Pod(cleanupName, o.Image, "16Mi", args...)
	pod.RestartPolicy = corev1.RestartPolicyOnFailure
	pod.Containers[0].Resources = corev1.ResourceRequirements{Requests: quantity("10m", "64Mi"), Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}}
	return batchv1.JobSpec{BackoffLimit: new(int32(6)), Template: corev1.PodTemplateSpec{Spec: pod}}
}

// YAML returns the objects as documents for `kubectl apply`.
func (o CleanupOptions) YAML() ([]byte, error) { return manifest.YAML(o.Objects()) }

// MakeCleanupJob creates a Job in the cluster. The Job waits until the run is over. Then it removes the remaining
// objects of the run, and itself. Call MakeCleanupJob after Setup.
func (t *Target) MakeCleanupJob(ctx context.Context, image string) error {
	defer t.waiting("the cluster to create the Job that cleans up")()
	o := CleanupOptions{Image: image, Namespace: t.Namespace + "-cleanup", run: t.runID}
	client, err := dynamic.NewForConfig(t.Admin)
	if err != nil {
		return fmt.Errorf("create a client for cluster %s: %w", t.Cluster.Name, err)
	}
	t.cleanupJob = true
	for i := range o.Objects() {
		object := o.Objects()[i] // computed again, because the owner is known only after the first object was created
		u, err := manifest.Plain(object)
		if err != nil {
			return err
		}
		made, err := client.Resource(manifest.Resource(u.GetKind())).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create %s %s of the cleanup Job: %w", u.GetKind(), u.GetName(), err)
		}
		if i == 0 {
			o.owner = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: made.GetName(), UID: made.GetUID()}}
		}
	}
	return nil
}
