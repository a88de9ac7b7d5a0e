// Package job runs the workers of a run in a cluster, as the pods of an Indexed Job. It also creates the manifests for
// a run whose coordinator is a Job in the cluster (Coordinator).
//
//	Options -> Namespace, ServiceAccount, Job, Secret with the run's credentials -> pods, one worker each
//	coordinator <- one TLS connection -> pod: the pod connects, or the API server forwards the connection to the pod's port
//
// The pods have a ServiceAccount without permissions, and do not mount its token. The coordinator sends the workers the
// loads and the credentials for the target.
package job

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/manifest"
	"github.com/stormglass/stormglass/loadgen/internal/workers"
)

const (
	// DefaultResources are the resource requests of a worker if Options.Resources is empty.
	DefaultResources = "cpu=1,memory=512Mi"
	// account is the name of the workers' ServiceAccount, and of objects that are not for a particular run.
	account = "stormglass-workers"
	// port is the port of a worker that waits for its coordinator, on the loopback address of the worker's pod.
	port = 7443
	// credentials is the mount path of the Secret in a pod.
	credentials = "/credentials"
	// keptAfterEnd is the time in seconds until Kubernetes deletes an ended Job that the coordinator has not deleted.
	keptAfterEnd = 5 * 60
	// longest is the maximum duration of a Job, in seconds. It ends a Job whose coordinator is gone.
	longest = 7 * 24 * 60 * 60
	// endWithin is the termination grace period of a worker's pod, in seconds.
	endWithin = 5
)

// Options configures workers in a cluster.
type Options struct {
	// Image is the container image of the workers. Its entry point must be loadgen.
	Image string
	// Namespace is the workers' namespace, which must exist. If it is empty, the run creates a namespace.
	Namespace string
	// PullSecret is the name of a Secret in Namespace with the credentials for the image registry. It may be empty.
	PullSecret string
	// Resources are the resource requests of each worker, such as cpu=1,memory=512Mi. The memory request is also the
	// limit. If Resources is empty, DefaultResources apply.
	Resources string
	// NodeSelector is the node selector of the pods, in the form KEY=VALUE,KEY=VALUE.
	NodeSelector string
	// Tolerations are the pods' tolerations, in the form KEY=VALUE:EFFECT,KEY:EFFECT,KEY. A toleration without VALUE
	// tolerates all values of the key, and one without EFFECT tolerates all effects.
	Tolerations string
}

// Check returns an error if an option is invalid. The error names the flag that sets the option.
func (o Options) Check() error {
	errs := []error{manifest.CheckImage(o.Image)}
	if o.Namespace != "" {
		errs = append(errs, manifest.CheckNamespace("workers-namespace", o.Namespace))
	}
	if o.PullSecret != "" {
		if wrong := validation.IsDNS1123Subdomain(o.PullSecret); len(wrong) > 0 {
			errs = append(errs, fmt.Errorf("--image-pull-secret %q is not a Secret name", o.PullSecret))
		}
		if o.Namespace == "" {
			errs = append(errs, errors.New("--image-pull-secret requires --workers-namespace, the namespace of that Secret"))
		}
	}
	_, err := o.resources()
	errs = append(errs, err)
	_, err = o.nodeSelector()
	errs = append(errs, err)
	_, err = o.tolerations()
	return errors.Join(append(errs, err)...)
}

func (o Options) resources() (corev1.ResourceList, error) {
	text := o.Resources
	if text == "" {
		text = DefaultResources
	}
	list := corev1.ResourceList{}
	for item := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(item, "=")
		quantity, err := builtin.ParseQuantity(value)
		if !ok || err != nil || name != "cpu" && name != "memory" || quantity.Sign() <= 0 {
			return nil, fmt.Errorf("--workers-resources %q: %q is not an amount of cpu or memory (write %s)", text, item, DefaultResources)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return list, nil
}

func (o Options) nodeSelector() (map[string]string, error) {
	if o.NodeSelector == "" {
		return nil, nil
	}
	labels := map[string]string{}
	for item := range strings.SplitSeq(o.NodeSelector, ",") {
		key, value, ok := strings.Cut(item, "=")
		if !ok || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			return nil, fmt.Errorf("--workers-node-selector %q: %q is not a label (write KEY=VALUE,KEY=VALUE)", o.NodeSelector, item)
		}
		labels[key] = value
	}
	return labels, nil
}

// Manifests describes workers that the user creates with kubectl. Coordinator is the coordinator's address. If it is
// empty, the workers wait for the coordinator to connect. The objects do not include the Secret with the credentials,
// because each run has its own.
type Manifests struct {
	Options
	Count       int
	Coordinator string
}

// Check returns an error if a field is invalid. The error names the flag that sets the field.
func (m Manifests) Check() error {
	var errs []error
	if m.Count < 1 || m.Count > workers.Most {
		errs = append(errs, fmt.Errorf("--workers %d: must be between 1 and %d", m.Count, workers.Most))
	}
	if m.Coordinator != "" {
		errs = append(errs, workers.CheckAddress("coordinator", m.Coordinator))
	}
	return errors.Join(append(errs, m.Options.Check())...)
}

// Objects returns the objects in the order in which to create them.
func (m Manifests) Objects() ([]runtime.Object, error) {
	p := setup{Options: m.Options, name: account, namespace: m.Namespace, count: m.Count, coordinator: m.Coordinator, makes: m.Namespace == ""}
	if p.makes {
		p.namespace = account
	}
	return p.objects()
}

// YAML returns the objects as documents for `kubectl apply`.
func (m Manifests) YAML() ([]byte, error) {
	objects, err := m.Objects()
	if err != nil {
		return nil, err
	}
	return manifest.YAML(objects)
}

// setup describes the objects to create for workers, either for one run or for Manifests.
type setup struct {
	Options
	name, namespace string // name of the Job and its Secret, and their namespace
	makes           bool   // whether the namespace is created and removed with the run
	count           int
	coordinator     string
	run             string // id of the run; empty if the objects are for any run
}

func (p setup) meta(namespace, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{cluster.ManagedByLabel: "stormglass"}}
	if p.run != "" {
		maps.Copy(m.Labels, cluster.Labels(p.run))
	}
	return m
}

func (p setup) objects() (all []runtime.Object, err error) {
	job, err := p.job()
	if err != nil {
		return nil, err
	}
	if p.makes {
		all = append(all, manifest.Namespace(p.meta("", p.namespace)))
	}
	return append(all,
		&corev1.ServiceAccount{TypeMeta: manifest.Type("v1", "ServiceAccount"), ObjectMeta: p.meta(p.namespace, p.account()), AutomountServiceAccountToken: new(false)},
		job,
	), nil
}

// account returns the name of the workers' ServiceAccount. If other runs may use the namespace, because it existed
// before, the name contains the run's id.
func (p setup) account() string {
	if p.makes {
		return account
	}
	return p.name
}

func (p setup) job() (*batchv1.Job, error) {
	resources, err := p.resources()
	if err != nil {
		return nil, err
	}
	args := []string{"worker", "--ca=" + credentials + "/ca.pem", "--token=" + credentials + "/token"}
	if p.coordinator != "" {
		args = append(args, "--coordinator="+p.coordinator)
	} else {
		args = append(args, fmt.Sprintf("--listen=127.0.0.1:%d", port))
	}
	pod := manifest.Pod(p.account(), p.Image, "64Mi", args...)
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.AutomountServiceAccountToken = new(false)
	pod.TerminationGracePeriodSeconds = new(int64(endWithin))
	if err := p.place(&pod); err != nil {
		return nil, err
	}
	pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{jobLabel: p.name}},
	}}
	c := &pod.Containers[0]
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	limit(c, resources)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "credentials", MountPath: credentials, ReadOnly: true})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "credentials", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: p.name, DefaultMode: new(int32(0o440))},
	}})
	labels := p.meta("", "").Labels
	return &batchv1.Job{
		TypeMeta: manifest.Type("batch/v1", "Job"), ObjectMeta: p.meta(p.namespace, p.name),
		Spec: batchv1.JobSpec{
			CompletionMode: new(batchv1.IndexedCompletion), Completions: new(int32(p.count)), Parallelism: new(int32(p.count)),
			BackoffLimit: new(int32(0)), ActiveDeadlineSeconds: new(int64(longest)), TTLSecondsAfterFinished: new(int32(keptAfterEnd)),
			// If a pod is drained before its worker has joined, the Job replaces the pod. If the worker has already
			// joined, the coordinator refuses the new worker.
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:          batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
			}}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}, nil
}

// jobLabel is the label on a Job's pods that holds the Job's name.
const jobLabel = batchv1.JobNameLabel

// secret returns the Secret with the run's credentials. The Job is its owner, so the Secret is deleted with the Job.
func (p setup) secret(job *batchv1.Job, ca, token string) *corev1.Secret {
	m := p.meta(p.namespace, p.name)
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID}}
	return &corev1.Secret{ObjectMeta: m, Data: map[string][]byte{"ca.pem": []byte(ca), "token": []byte(token)}}
}

// String describes the objects for the user.
func (p setup) String() string {
	text := fmt.Sprintf("a Job of %d pods of image %s, in namespace %s", p.count, p.Image, p.namespace)
	if p.makes {
		text += ", which is created for the run and removed after it"
	}
	return text
}
