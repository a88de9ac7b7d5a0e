package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// watchPods calls seePod for each change of the workers' pods until the Job is stopped. It also calls seePod regularly
// for all pods, because the API server reports no change if the kubelet of a pod is dead.
func (c *runJob) watchPods() {
	follow(c.ctx, c.client.CoreV1().Pods(c.namespace), metav1.ListOptions{LabelSelector: jobLabel + "=" + c.name}, &corev1.Pod{}, tellAfter, c.seePod)
}

// watchEvents calls seeRefusal for Events that explain why pods of the Job cannot be created, until the Job is stopped.
func (c *runJob) watchEvents() {
	failures := fields.Set{"involvedObject.kind": "Job", "involvedObject.name": c.name, "reason": "FailedCreate"}.String()
	follow(c.ctx, c.client.CoreV1().Events(c.namespace), metav1.ListOptions{FieldSelector: failures}, &corev1.Event{}, 0, func(e *corev1.Event) { c.seeRefusal(e.Message) })
}

type collection[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// follow calls `see` for each selected object that exists, is created or changes, until ctx ends. It also calls `see`
// for all selected objects at the interval `again`; 0 means never.
func follow[T, L runtime.Object](ctx context.Context, from collection[L], selected metav1.ListOptions, object T, again time.Duration, see func(T)) {
	selects := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector, o.FieldSelector = selected.LabelSelector, selected.FieldSelector
		return o
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return from.List(ctx, selects(o))
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return from.Watch(ctx, selects(o))
			},
		},
		ObjectType:   object,
		ResyncPeriod: again,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(added any) { see(added.(T)) },
			UpdateFunc: func(_, now any) { see(now.(T)) },
		},
	})
	informer.RunWithContext(ctx)
}

// hopeless maps reasons why a container cannot start to remedies. Kubernetes does not resolve these reasons itself.
var hopeless = map[string]string{
	"ImagePullBackOff":           "with --image, name an image that the nodes can pull, or add --image-pull-secret",
	"ErrImageNeverPull":          "load the image onto the nodes first",
	"InvalidImageName":           "correct --image",
	"CreateContainerConfigError": "see `kubectl describe` of the pod",
	"CreateContainerError":       "see `kubectl describe` of the pod",
	"RunContainerError":          "the image must have loadgen as its entry point",
}

// seePod handles the current state of a pod. It connects to a running worker. It reports a pod that has ended or cannot
// run, and tells the user about delays.
func (c *runJob) seePod(p *corev1.Pod) {
	index, ok := indexOf(p)
	if !ok {
		return
	}
	name := p.Namespace + "/" + p.Name
	for _, s := range p.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && hopeless[w.Reason] != "" {
			c.end(p, index, fmt.Errorf("pod %s cannot run image %s: %s: %s (%s)", name, c.Image, w.Reason, oneLine(w.Message), hopeless[w.Reason]))
			return
		}
		if t := s.State.Terminated; t != nil {
			c.end(p, index, fmt.Errorf("pod %s: %s", name, ending(t)))
			return
		}
	}
	switch p.Status.Phase {
	case corev1.PodFailed, corev1.PodSucceeded:
		c.end(p, index, fmt.Errorf("pod %s: %s", name, oneLine(strings.TrimSpace(p.Status.Reason+" "+p.Status.Message))))
	case corev1.PodRunning:
		c.mu.Lock()
		dial := c.coordinator == "" && !c.reached[p.UID]
		c.reached[p.UID] = true
		c.mu.Unlock()
		if dial {
			c.all.Go(func() { c.reach(p.Name) })
		}
	case corev1.PodPending:
		for _, condition := range p.Status.Conditions {
			switch {
			case condition.Type != corev1.PodScheduled:
			case condition.Reason == corev1.PodReasonUnschedulable:
				c.Tell("pod %s is not scheduled: %s (use fewer --workers, smaller --workers-resources or more nodes)", name, oneLine(condition.Message))
			case condition.Status == corev1.ConditionTrue && p.Status.StartTime == nil && time.Since(condition.LastTransitionTime.Time) > tellAfter:
				c.Tell("pod %s is on node %s, whose kubelet has not started it (is the node alive? to use other nodes, set --workers-node-selector)", name, p.Spec.NodeName)
			}
		}
	}
}

// end reports once that a pod has ended. The run then fails. If the pod was drained before its worker joined, the Job
// replaces the pod, and end only tells the user.
func (c *runJob) end(p *corev1.Pod, index int, why error) {
	c.mu.Lock()
	told := c.gone[p.UID]
	c.gone[p.UID] = true
	c.mu.Unlock()
	if told {
		return
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			c.Tell("pod %s/%s has ended: %s", p.Namespace, p.Name, oneLine(condition.Message))
			return // the closed connection of a worker that had joined ends the run
		}
	}
	c.ended(index, why)
}

// ending returns how a container ended: reason, exit code and the last line of its message.
func ending(t *corev1.ContainerStateTerminated) string {
	lines := strings.Split(strings.TrimSpace(t.Message), "\n")
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" && t.Reason != "Completed" {
		text = t.Reason + ", " + text
	}
	if last := strings.TrimPrefix(lines[len(lines)-1], "loadgen: "); last != "" {
		text += ": " + last
	}
	return text
}

// seeRefusal handles the message of an Event which says that the Job could not create a pod. The run fails if a quota,
// Pod Security or another policy refused the pod; otherwise seeRefusal tells the user.
func (c *runJob) seeRefusal(message string) {
	text := oneLine(message)
	remedy := ""
	switch {
	case strings.Contains(text, "exceeded quota"), strings.Contains(text, "must specify"):
		remedy = "raise the quota, or use smaller --workers-resources or fewer --workers"
	case strings.Contains(text, "violates PodSecurity"):
		remedy = "name a namespace that allows the Pod Security profile restricted"
	case strings.Contains(text, "forbidden"):
		remedy = "ask the administrator of the cluster"
	}
	line := fmt.Sprintf("job %s/%s cannot create its pods: %s", c.namespace, c.name, text)
	if remedy == "" {
		c.Tell("%s", line)
		return
	}
	c.ended(0, errors.New(line+" ("+remedy+")"))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
