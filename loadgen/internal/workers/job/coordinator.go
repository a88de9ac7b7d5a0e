package job

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/manifest"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// coordinatorNamespace is the namespace that Objects creates for the run if Options.Namespace is empty.
	coordinatorNamespace = "stormglass-run"
	// The coordinator's pod has the scenario in scenarioDir, with the name scenarioFile, and the runs in resultsDir.
	scenarioDir, scenarioFile = "/scenario", "scenario.yaml"
	resultsDir                = "/results"
	// windUp is the termination grace period of the pod, in seconds. A stopped run needs this time to delete the objects
	// that it created.
	windUp = 6 * 60
	// largestFiles is the maximum size of a ConfigMap's data, in bytes. The API server sets this limit.
	largestFiles = 1 << 20
)

// Coordinator describes a run with a coordinator that is a Job in the cluster under load. The workers run in the same
// namespace.
type Coordinator struct {
	// Options are the options of the workers. Image, Namespace, PullSecret, NodeSelector and Tolerations also apply to
	// the coordinator's pod. If Namespace is empty, Objects creates a namespace.
	Options
	// Workers is the number of workers that divide the loads. If it is 0, the run's own process generates all load.
	Workers int
	// Scenario is the scenario to run, with overrides and defaults applied. A ConfigMap stores it.
	Scenario *scenario.Scenario
	// Rules are the RBAC rules that the run needs (cluster.RunRules). They do not include the rules for starting
	// workers.
	Rules cluster.Rules
	// Args are additional arguments of `loadgen run`.
	Args []string
	// Claim is the name of a PersistentVolumeClaim for the run directory. If it is empty, the directory disappears with
	// the pod.
	Claim string
}

// Check returns an error if a field is invalid. The error names the flag that sets the field.
func (c Coordinator) Check() error {
	errs := []error{c.Options.Check()}
	if c.Claim != "" {
		if wrong := validation.IsDNS1123Subdomain(c.Claim); len(wrong) > 0 {
			errs = append(errs, fmt.Errorf("--results-claim %q is not a PersistentVolumeClaim name", c.Claim))
		}
		if c.Namespace == "" {
			errs = append(errs, errors.New("--results-claim requires --workers-namespace, the namespace of that PersistentVolumeClaim"))
		}
	}
	return errors.Join(errs...)
}

// in returns the namespace of the run's Job and other objects.
func (c Coordinator) in() string {
	if c.Namespace == "" {
		return coordinatorNamespace
	}
	return c.Namespace
}

// name returns the name of the run's objects. It contains the scenario's name, so that runs of several scenarios can
// use one namespace.
func (c Coordinator) name() string { return "stormglass-" + c.Scenario.Name }

func (c Coordinator) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{cluster.ManagedByLabel: "stormglass"}}
}

// AllRules returns the RBAC rules that the run and its workers need.
func (c Coordinator) AllRules() cluster.Rules {
	all := cluster.Rules{}
	all.Add(c.Rules)
	if c.Workers > 0 {
		own := c.Options
		own.Namespace = c.in()
		all.Add(Starter{Options: own, OfTarget: true}.Needs(false))
	}
	return all.Compact()
}

// Objects returns the objects of the run in the order in which to create them.
func (c Coordinator) Objects() (all []runtime.Object, err error) {
	files, err := c.files()
	if err != nil {
		return nil, err
	}
	job, err := c.job()
	if err != nil {
		return nil, err
	}
	if c.Namespace == "" {
		all = append(all, manifest.Namespace(c.meta("", c.in())))
	}
	all = append(all, &corev1.ServiceAccount{TypeMeta: manifest.Type("v1", "ServiceAccount"), ObjectMeta: c.meta(c.in(), c.name())})
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: c.name(), Namespace: c.in()}}
	role := c.in() + "-" + c.Scenario.Name // unique in the cluster
	all = append(all, c.AllRules().Objects(role, subjects, func(namespace string) metav1.ObjectMeta { return c.meta(namespace, role) })...)
	all = append(all, confinement(c.name(), c.in(), role, c.Scenario.Namespaces, func(name string) metav1.ObjectMeta { return c.meta("", name) })...)
	return append(all, files, job), nil
}

// YAML returns the objects as documents for `kubectl apply`.
func (c Coordinator) YAML() ([]byte, error) {
	objects, err := c.Objects()
	if err != nil {
		return nil, err
	}
	return manifest.YAML(objects)
}

// files returns a ConfigMap with the scenario and the files that it refers to, by file name.
func (c Coordinator) files() (*corev1.ConfigMap, error) {
	named := c.Scenario.Bundle()
	text, err := c.Scenario.Resolved()
	if err != nil {
		return nil, err
	}
	m := &corev1.ConfigMap{TypeMeta: manifest.Type("v1", "ConfigMap"), ObjectMeta: c.meta(c.in(), c.name()), Data: map[string]string{scenarioFile: string(text)}}
	size := len(text)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		size += len(name) + len(named[name])
		if utf8.Valid(named[name]) {
			m.Data[name] = string(named[name])
			continue
		}
		if m.BinaryData == nil {
			m.BinaryData = map[string][]byte{}
		}
		m.BinaryData[name] = named[name]
	}
	if size > largestFiles {
		return nil, fmt.Errorf("scenario %s and its files have %d bytes, but a ConfigMap can have at most %d (run it from outside the cluster with --kubeconfig)", c.Scenario.Name, size, largestFiles)
	}
	return m, nil
}

// args returns the arguments of the run's container. The kubelet replaces $(POD_IP) by the pod's address.
func (c Coordinator) args() []string {
	args := []string{"run", scenarioDir + "/" + scenarioFile, "--current-cluster", "--yes", "--summary=" + corev1.TerminationMessagePathDefault}
	if c.Workers > 0 {
		args = append(args, fmt.Sprintf("--workers=%d", c.Workers), "--image="+c.Image, "--workers-namespace="+c.in(),
			fmt.Sprintf("--workers-listen=:%d", port), "--workers-advertise=$(POD_IP)")
		for _, flag := range []struct{ name, value string }{
			{"image-pull-secret", c.PullSecret}, {"workers-resources", c.Resources}, {"workers-node-selector", c.NodeSelector}, {"workers-tolerations", c.Tolerations},
		} {
			if flag.value != "" {
				args = append(args, "--"+flag.name+"="+flag.value)
			}
		}
	}
	for _, arg := range c.Args {
		args = append(args, strings.ReplaceAll(arg, "$(", "$$(")) // the kubelet would expand $( as a variable
	}
	return args
}

// resources returns the resource requests of the run's container: one CPU and at least 1 GiB of memory. It adds 0.3 MiB
// per simulated node (loadgen/lab/records/performance.md). Without workers, it also adds 30 KiB per watch. It doubles
// both additions to allow for the recorded data.
func (c Coordinator) resources() corev1.ResourceList {
	watches := 0
	if c.Workers == 0 {
		for _, peak := range plan.Of(c.Scenario).Peaks {
			watches = max(watches, peak.Watches)
		}
	}
	gib := 1 + c.Scenario.Nodes.Count/1500 + watches/15000
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dGi", gib))}
}

func (c Coordinator) job() (*batchv1.Job, error) {
	pod := manifest.Pod(c.name(), c.Image, "64Mi", c.args()...)
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.TerminationGracePeriodSeconds = new(int64(windUp))
	if err := c.place(&pod); err != nil {
		return nil, err
	}
	run := &pod.Containers[0]
	run.WorkingDir = resultsDir
	run.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	run.Env = append(run.Env, corev1.EnvVar{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}})
	limit(run, c.resources())
	run.VolumeMounts = append(run.VolumeMounts,
		corev1.VolumeMount{Name: "scenario", MountPath: scenarioDir, ReadOnly: true}, corev1.VolumeMount{Name: "results", MountPath: resultsDir})
	results := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	if c.Claim != "" {
		results = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Claim}}
	}
	pod.Volumes = append(pod.Volumes,
		corev1.Volume{Name: "scenario", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: c.name()}}}},
		corev1.Volume{Name: "results", VolumeSource: results})
	return &batchv1.Job{
		TypeMeta: manifest.Type("batch/v1", "Job"), ObjectMeta: c.meta(c.in(), c.name()),
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)), // a restarted run would send its requests again
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: c.meta("", "").Labels,
					// If an autoscaler evicted the pod, the run would end.
					Annotations: map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"},
				},
				Spec: pod,
			},
		},
	}, nil
}
