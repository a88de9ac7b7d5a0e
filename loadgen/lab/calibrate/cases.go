package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// podCase is a kind of pod whose lifecycle is compared between a real and a simulated node.
type podCase struct {
	name string
	// change changes the basic pod into a pod of this kind. The basic pod has one container, which runs until deletion.
	change func(*corev1.Pod)
	// until reports whether a pod has reached the state that `await` waits for. Nil means that the pod must be Ready.
	until func(*corev1.Pod) bool
	job   bool // the pods are created by a Job
}

const gate = "stormglass.dev/calibrated"

// ends makes the first container of a pod exit with the given code after 3 seconds. A real node uses the arguments of
// the container, a simulated node uses the annotations of the pod.
func ends(p *corev1.Pod, code string) {
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.Containers[0].Args = []string{"--after", "3s", "--code", code}
	p.Annotations = map[string]string{scenario.ExitAfterAnnotation: "3s", scenario.ExitCodeAnnotation: code}
}

func phase(want corev1.PodPhase) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Status.Phase == want }
}

func container(name string, args ...string) corev1.Container {
	return corev1.Container{Name: name, Image: containerImage, ImagePullPolicy: corev1.PullNever, Args: args}
}

func cases() []podCase {
	always := corev1.ContainerRestartPolicyAlways
	probe := func(period int32) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: period, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)}}}
	}
	return []podCase{
		{name: "one container"},
		{name: "volumes", change: func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
				{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "password"}}},
				{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "elsewhere", Path: "token"}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}},
				}}}},
			}
			for _, v := range p.Spec.Volumes {
				p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
			}
		}},
		{name: "probes", change: func(p *corev1.Pod) {
			c := &p.Spec.Containers[0]
			c.Args = []string{"--probes", ":8080"}
			c.StartupProbe, c.ReadinessProbe, c.LivenessProbe = probe(1), probe(30), probe(30)
		}},
		{name: "init containers", change: func(p *corev1.Pod) {
			sidecar := container("sidecar")
			sidecar.RestartPolicy = &always
			p.Spec.InitContainers = []corev1.Container{container("first", "--after", "1s"), container("second", "--after", "1s"), sidecar}
		}},
		{name: "three containers", change: func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, container("b"), container("c")) }},
		{name: "readiness gate", change: func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}} }},
		{name: "completes", change: func(p *corev1.Pod) { ends(p, "0") }, until: phase(corev1.PodSucceeded)},
		{name: "fails", change: func(p *corev1.Pod) { ends(p, "1") }, until: phase(corev1.PodFailed)},
		{name: "Job", change: func(p *corev1.Pod) { ends(p, "0") }, until: phase(corev1.PodSucceeded), job: true},
	}
}

// pods returns the number of pods of the case on each node: o.pods, or a third of it for a Job. The pods of a Job run
// one after another, and each takes seconds.
func (c podCase) pods(o options) int {
	if c.job {
		return (o.pods + 2) / 3
	}
	return o.pods
}

func (c podCase) pod(node string) *corev1.Pod {
	grace := int64(5)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container("a")}, TerminationGracePeriodSeconds: &grace, NodeName: node},
	}
	if c.change != nil {
		c.change(p)
	}
	return p
}

// paced calls do(0) to do(n-1), with random pauses between the calls, `every` on average. Without pauses, a kubelet
// would merge the status reports of pods that start or end at the same time. With fixed pauses, all pods would start at
// the same point of the kubelet's loops, whose periods are 1 s and 10 s.
func paced(ctx context.Context, n int, every time.Duration, rng *rand.Rand, do func(i int) error) error {
	for i := range n {
		if err := do(i); err != nil {
			return err
		}
		if !apiclient.Pause(ctx, time.Duration((0.5+rng.Float64())*float64(every))) {
			return context.Cause(ctx)
		}
	}
	return nil
}

func podName(node string, i int) string { return fmt.Sprintf("%s-%d", node, i) }

// create creates the pods of a case on the real and on the simulated node.
func (l *lab) create(ctx context.Context, c podCase, o options) error {
	if c.job {
		return l.createJobs(ctx, c, c.pods(o))
	}
	return paced(ctx, o.pods, o.every, l.rng, func(i int) error {
		for _, node := range nodes {
			pod := c.pod(node)
			pod.Name = podName(node, i)
			if _, err := l.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// createJobs creates a Job for each node. The pods of a Job run one after another. With parallel pods, it would depend
// on chance how often a node has no pod left. A node without pods ends its watches on the objects that the pods refer
// to.
func (l *lab) createJobs(ctx context.Context, c podCase, pods int) error {
	n, parallelism := int32(pods), int32(1)
	for _, node := range nodes {
		template := c.pod(node)
		template.Spec.NodeName = ""
		template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		_, err := l.client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec: batchv1.JobSpec{Parallelism: &parallelism, Completions: &n, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: template.Annotations}, Spec: template.Spec,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// await waits until all pods have reached the state that the case specifies. As soon as the containers of a pod are
// ready, it sets the conditions of the pod's readiness gates to True.
func (l *lab) await(ctx context.Context, c podCase, pods int) error {
	until := c.until
	if until == nil {
		until = func(p *corev1.Pod) bool { return conditionTrue(p, corev1.PodReady) }
	}
	opened := map[types.UID]bool{}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := l.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		done := 0
		for _, p := range list.Items {
			if len(p.Spec.ReadinessGates) > 0 && conditionTrue(&p, corev1.ContainersReady) && !opened[p.UID] {
				opened[p.UID] = true
				body := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True"}]}}`, gate)
				if _, err := l.client.CoreV1().Pods(namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status"); err != nil {
					return false, err
				}
			}
			if until(&p) {
				done++
			}
		}
		return done >= 2*pods, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the pods of %q (logs: %s): %w", c.name, l.dir, err)
	}
	return nil
}

func conditionTrue(p *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// remove deletes all Jobs and pods, and waits until all pods are gone.
func (l *lab) remove(ctx context.Context, o options) error {
	background := metav1.DeletePropagationBackground
	if err := l.client.BatchV1().Jobs(namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{}); err != nil {
		return err
	}
	pods := l.client.CoreV1().Pods(namespace)
	err := paced(ctx, o.pods, o.every, l.rng, func(i int) error {
		for _, node := range nodes {
			if err := pods.Delete(ctx, podName(node, i), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := pods.List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("deleted pods still exist (logs: %s): %w", l.dir, err)
	}
	return nil
}

// references creates the ConfigMap and the Secret that pods with volumes use.
func (l *lab) references(ctx context.Context) error {
	_, err := l.client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"a": "b"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = l.client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password"}, StringData: map[string]string{"a": "b"}}, metav1.CreateOptions{})
	return err
}
