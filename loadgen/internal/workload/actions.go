package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// DeploymentLabel is the label of each object that a deploy action created. Its value is the action's name.
	DeploymentLabel = "stormglass.dev/deployment"
	// RevisionAnnotation counts the updates of a pod template. A rolling update changes only this annotation.
	RevisionAnnotation = "stormglass.dev/revision"
	// Image is the image of the pods. Simulated nodes do not pull it.
	Image = "pause:3.10.1"

	fieldManager = "stormglass"

	autoscalerKind    = "horizontalpodautoscaler"
	podGroupKind      = "podgroup"
	claimTemplateKind = "resourceclaimtemplate"

	// claimName is the name under which a pod refers to its device claim.
	claimName = "devices"
)

// Do performs one action and returns when the API server has accepted the change. Callers may repeat Do for the same
// action, for example after an error. Its errors name the verb and the object.
func (w *Workload) Do(ctx context.Context, a scenario.Action) error {
	now := ask(w, func(t *tracker) deployment { return *t.of(a.Name) })
	next := revisionAfter(now.revision)
	switch a.Kind {
	case "deploy":
		if now.revision != "" && now.generation != deleted {
			next = now.revision // the workload exists: apply the same revision again
		}
		d, err := w.object(a, next)
		if err != nil {
			return err
		}
		if served(a) {
			if _, err := w.patch(ctx, "service", a.Name, types.ApplyPatchType, w.service(a)); err != nil {
				return err
			}
		}
		if a.Gang > 0 {
			if _, err := w.patch(ctx, podGroupKind, a.Name, types.ApplyPatchType, w.podGroup(a)); err != nil {
				return err
			}
		}
		if a.Devices > 0 {
			if _, err := w.patch(ctx, claimTemplateKind, a.Name, types.ApplyPatchType, w.claimTemplate(a)); err != nil {
				return err
			}
		}
		w.change(func(t *tracker) { t.of(a.Name).deploy = &a })
		if err := w.become(ctx, a, int64(a.Replicas), next, types.ApplyPatchType, d); err != nil || !a.Autoscales() {
			return err
		}
		return w.autoscaler(ctx, a)
	case "demand":
		return w.demand(a)
	case "rollingUpdate":
		return w.become(ctx, a, now.replicas, next, types.MergePatchType, updatePatch(now.workload(), a, next))
	case "scale":
		return w.become(ctx, a, int64(a.Replicas), now.revision, types.MergePatchType,
			map[string]any{"spec": map[string]any{"replicas": a.Replicas}})
	case "delete":
		w.change(func(t *tracker) {
			delete(w.demands, a.Name)
			t.want(a.Name, 0, now.revision)
			t.accepted(a.Name, deleted, time.Now())
		})
		kinds := []string{"service", strings.ToLower(now.workload())}
		if now.deploy != nil && now.deploy.Autoscales() {
			kinds = append([]string{autoscalerKind}, kinds...)
		}
		if now.deploy != nil && now.deploy.Gang > 0 {
			kinds = append(kinds, podGroupKind)
		}
		if now.deploy != nil && now.deploy.Devices > 0 {
			kinds = append(kinds, claimTemplateKind)
		}
		for _, kind := range kinds {
			if err := w.remove(ctx, kind, a.Name); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("unknown action %q", a.Kind)
}

func revisionAfter(revision string) string {
	n, _ := strconv.Atoi(revision) // "" before the first revision
	return strconv.Itoa(n + 1)
}

// become records the requested state of a workload in the tracker, and then sends the patch. The order matters:
// otherwise the tracker could mistake the old state for the new one.
func (w *Workload) become(ctx context.Context, a scenario.Action, replicas int64, revision string, how types.PatchType, patch any) error {
	asked := time.Now()
	var workload string
	w.change(func(t *tracker) {
		d := t.of(a.Name)
		workload = d.workload()
		pods := replicas
		if d.revision == revision {
			pods = max(0, replicas-d.replicas)
		}
		t.want(a.Name, replicas, revision)
		switch workload {
		case scenario.CronJob: // the Jobs of a CronJob start later
			return
		case scenario.DaemonSet:
			pods = t.up
		}
		t.begin(a.Name, a.Kind, pods, revision, served(a), asked)
	})
	o, err := w.patch(ctx, strings.ToLower(workload), a.Name, how, patch)
	if err != nil {
		return err
	}
	answered := time.Now()
	w.change(func(t *tracker) { t.accepted(a.Name, o.generation, answered) })
	return nil
}

// roots maps each kind that actions write to the API path of its group.
var roots = map[string]string{
	"service": "/api/v1", "deployment": "/apis/apps/v1", "statefulset": "/apis/apps/v1", "daemonset": "/apis/apps/v1",
	"job": "/apis/batch/v1", "cronjob": "/apis/batch/v1", autoscalerKind: "/apis/autoscaling/v2",
	podGroupKind: "/apis/" + scenario.PodGroupVersion, claimTemplateKind: "/apis/resource.k8s.io/v1",
}

func (w *Workload) path(kind, name string) string {
	return roots[kind] + "/namespaces/" + w.options.Namespace + "/" + kind + "s/" + name
}

func (w *Workload) patch(ctx context.Context, kind, name string, how types.PatchType, patch any) (object, error) {
	fail := func(err error) (object, error) {
		return object{}, fmt.Errorf("patch %s %s/%s: %w", kind, w.options.Namespace, name, err)
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return fail(err)
	}
	r := w.rest.Patch(how).AbsPath(w.path(kind, name)).Param("fieldManager", fieldManager).
		SetHeader("Accept", protobuf.ContentType).Body(data)
	if how == types.ApplyPatchType {
		r = r.Param("force", "true")
	}
	var answer []byte
	if err := w.Retry(ctx, func() (err error) { answer, err = apiclient.Body(r.Do(ctx)); return err }); err != nil {
		return fail(err)
	}
	msg, err := protobuf.Unwrap(answer)
	if err != nil {
		return fail(err)
	}
	o, err := decode(namespaceKind, msg) // reads only the metadata
	if err != nil {
		return fail(err)
	}
	return o, nil
}

func (w *Workload) remove(ctx context.Context, kind, name string) error {
	err := w.Retry(ctx, func() error {
		return w.rest.Delete().AbsPath(w.path(kind, name)).Param("propagationPolicy", "Background").Do(ctx).Error()
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s/%s: %w", kind, w.options.Namespace, name, err)
	}
	return nil
}

func (w *Workload) labels(name string) map[string]string {
	l := maps.Clone(w.options.Labels)
	l[DeploymentLabel] = name
	return l
}

// template returns the pod template of a deploy action. Unset fields get the defaults of Kubernetes.
func (w *Workload) template(a scenario.Action, revision string) (corev1.PodTemplateSpec, error) {
	requests := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: a.CPU, corev1.ResourceMemory: a.Memory} {
		if text == "" {
			continue
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return corev1.PodTemplateSpec{}, fmt.Errorf("deploy %s: %s request %q: %w", a.Name, name, text, err)
		}
		requests[name] = q
	}
	labels := w.labels(a.Name)
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{RevisionAnnotation: revision}},
		Spec: corev1.PodSpec{
			PriorityClassName: a.PriorityClass,
			SchedulerName:     a.SchedulerName,
			NodeSelector:      w.options.NodeSelector,
			Tolerations:       append(evictAfter(a), w.options.Tolerations...),
			Containers: []corev1.Container{{
				Name: "pause", Image: Image,
				Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				Resources: corev1.ResourceRequirements{Requests: requests},
			}},
		},
	}
	if a.WorkloadKind() == scenario.DaemonSet {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, w.options.DaemonTolerations...)
	}
	if a.Gang > 0 {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &a.Name}
	}
	if a.Devices > 0 {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: claimName, ResourceClaimTemplateName: &a.Name}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: claimName}}
	}
	place(&pod.Spec, a, labels)
	return pod, nil
}

// claimTemplate returns the ResourceClaimTemplate of a deploy action's pods. It claims devices of the run's
// DeviceClass.
func (w *Workload) claimTemplate(a scenario.Action) *resourcev1.ResourceClaimTemplate {
	request := resourcev1.DeviceRequest{Name: "device", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: w.options.DeviceClass, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(a.Devices),
	}}
	return &resourcev1.ResourceClaimTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceClaimTemplate"},
		ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: w.options.Namespace, Labels: w.labels(a.Name)},
		Spec: resourcev1.ResourceClaimTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: w.labels(a.Name)},
			Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}},
		},
	}
}

// podGroup returns the PodGroup that makes the scheduler place a deploy action's pods together.
func (w *Workload) podGroup(a scenario.Action) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: scenario.PodGroupVersion, Kind: "PodGroup"},
		ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: w.options.Namespace, Labels: w.labels(a.Name)},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy:  schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(a.Gang)}},
			PriorityClassName: a.PriorityClass,
		},
	}
}

// evictAfter returns tolerations that set the time after which the control plane evicts pods from failed nodes, or nil
// if the action does not set this time. They replace the tolerations of 300 s that the DefaultTolerationSeconds
// admission plugin would add.
func evictAfter(a scenario.Action) []corev1.Toleration {
	if a.EvictAfter == 0 {
		return nil
	}
	seconds := int64(math.Ceil(a.EvictAfter.D().Seconds())) // the API accepts only whole seconds
	var out []corev1.Toleration
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		out = append(out, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
		})
	}
	return out
}

func strategy(a scenario.Action) appsv1.DeploymentStrategy {
	if a.MaxSurge == "" && a.MaxUnavailable == "" {
		return appsv1.DeploymentStrategy{}
	}
	r := &appsv1.RollingUpdateDeployment{}
	if a.MaxSurge != "" {
		r.MaxSurge = new(intstr.Parse(a.MaxSurge))
	}
	if a.MaxUnavailable != "" {
		r.MaxUnavailable = new(intstr.Parse(a.MaxUnavailable))
	}
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: r}
}

func updatePatch(workload string, a scenario.Action, revision string) any {
	spec := map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{RevisionAnnotation: revision},
	}}}
	switch s := strategy(a); {
	case s.RollingUpdate == nil:
	case workload == scenario.Deployment:
		spec["strategy"] = s
	default: // the field has a different name in the other kinds
		spec["updateStrategy"] = s
	}
	return map[string]any{"spec": spec}
}

func (w *Workload) service(a scenario.Action) *corev1.Service {
	labels := w.labels(a.Name)
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: w.options.Namespace, Labels: labels},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
	if a.WorkloadKind() == scenario.StatefulSet {
		s.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return s
}

func place(pod *corev1.PodSpec, a scenario.Action, labels map[string]string) {
	own := &metav1.LabelSelector{MatchLabels: labels}
	apart := corev1.PodAffinityTerm{LabelSelector: own, TopologyKey: corev1.LabelHostname}
	switch a.AntiAffinity {
	case "preferred":
		pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: apart}},
		}}
	case "required":
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
