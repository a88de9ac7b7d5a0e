package node

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Retries of an Event that got no answer (client-go's record.EventBroadcaster).
const (
	eventTries = 12
	eventSleep = 10 * time.Second
)

type containerEvent struct{ container, field, reason, message string }

// startEvents are a pod's as its containers start: Pulled, Created, Started of each.
func startEvents(pod *corev1.Pod, pulled []bool) []containerEvent {
	var out []containerEvent
	eachContainer(pod, func(i int, c *corev1.Container, field string) {
		message := fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", c.Image)
		if pulled[i] {
			message = fmt.Sprintf("Successfully pulled image %q", c.Image)
		}
		out = append(out,
			containerEvent{c.Name, field, "Pulled", message},
			containerEvent{c.Name, field, "Created", "Container created"},
			containerEvent{c.Name, field, "Started", "Container started"})
	})
	return out
}

func pullingEvents(pod *corev1.Pod, pulled []bool) []containerEvent {
	var out []containerEvent
	eachContainer(pod, func(i int, c *corev1.Container, field string) {
		if pulled[i] {
			out = append(out, containerEvent{c.Name, field, "Pulling", fmt.Sprintf("Pulling image %q", c.Image)})
		}
	})
	return out
}

// killingEvents are those of the running containers: init containers but sidecars have ended.
func killingEvents(pod *corev1.Pod) []containerEvent {
	var out []containerEvent
	eachContainer(pod, func(i int, c *corev1.Container, field string) {
		if i >= len(pod.Spec.InitContainers) || isSidecar(c) {
			out = append(out, containerEvent{c.Name, field, "Killing", "Stopping container " + c.Name})
		}
	})
	return out
}

// eachContainer calls f for each container, in the order in which a kubelet starts them.
func eachContainer(pod *corev1.Pod, f func(i int, c *corev1.Container, field string)) {
	for i := range pod.Spec.InitContainers {
		f(i, &pod.Spec.InitContainers[i], "spec.initContainers")
	}
	for i := range pod.Spec.Containers {
		f(len(pod.Spec.InitContainers)+i, &pod.Spec.Containers[i], "spec.containers")
	}
}

// announceEvents posts events of a pod after all earlier ones. A kubelet posts one at a time; here those of one
// moment go out together, at a third of the cost.
func (k *kubelet) announceEvents(life *life, pod *corev1.Pod, events []containerEvent) {
	if !k.plan.Spec.Events || k.plan.Spec.Fidelity != Kubelet {
		return
	}
	ref := corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
	now := life.clock.Now()
	var bodies [][]byte
	for i, e := range events {
		ref.FieldPath = e.field + "{" + e.container + "}"
		at := metav1.NewTime(now)
		body, err := encode("v1", "Event", &corev1.Event{
			// Named as client-go's recorder names them; one instant must not name two.
			ObjectMeta:     metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name + "." + strconv.FormatInt(now.UnixNano()+int64(i), 16)},
			InvolvedObject: ref, Reason: e.reason, Message: e.message, Type: corev1.EventTypeNormal, Count: 1,
			FirstTimestamp: at, LastTimestamp: at,
			Source:              corev1.EventSource{Component: "kubelet", Host: k.name},
			ReportingController: "kubelet", ReportingInstance: k.name,
		})
		if err != nil {
			k.plan.Log("node %s: %v", k.name, err)
			return
		}
		bodies = append(bodies, body)
	}
	if len(bodies) > 0 {
		k.late(life, func() { life.events.add(func() { k.postEvents(life, ref.Namespace, bodies, 1) }) })
	}
}

// postEvents returns when all are answered. Those without an answer are tried again later.
func (k *kubelet) postEvents(life *life, namespace string, bodies [][]byte, try int) {
	var all sync.WaitGroup
	all.Add(len(bodies))
	for _, body := range bodies {
		k.link.start(life.ctx, call{
			verb: "create", resource: "events", path: "/api/v1/namespaces/" + namespace + "/events", body: body, blind: true,
		}, func(_ []byte, err error) {
			defer all.Done()
			if !answered(err) && try < eventTries {
				life.after(eventSleep, func() {
					life.events.add(func() { k.postEvents(life, namespace, [][]byte{body}, try+1) })
				})
			}
		})
	}
	all.Wait()
}

func answered(err error) bool {
	return err == nil || errors.As(err, new(*apierrors.StatusError))
}
