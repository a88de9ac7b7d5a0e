package node

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// eventTries is the number of attempts to post an Event if the API server does not respond, and eventSleep is the wait
// between two attempts (client-go's record.EventBroadcaster).
const (
	eventTries = 12
	eventSleep = 10 * time.Second
)

type containerEvent struct{ container, field, reason, message string }

// startEvents returns the Events Pulled, Created and Started for each container of a pod. pulled[i] is true if the
// image of container i was not on the node and was pulled.
func startEvents(pod *corev1.Pod, pulled []bool) []containerEvent {
	var out []containerEvent
	eachContainer(pod, func(i int, c *corev1.Container, field string) {
		out = append(out, startsOf(c, field, pulled[i])...)
	})
	return out
}

func startsOf(c *corev1.Container, field string, pulled bool) []containerEvent {
	message := fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", c.Image)
	if pulled {
		message = fmt.Sprintf("Successfully pulled image %q", c.Image)
	}
	return []containerEvent{
		{c.Name, field, "Pulled", message}, {c.Name, field, "Created", "Container created"}, {c.Name, field, "Started", "Container started"},
	}
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

// killingEvents returns a Killing Event for each container and sidecar of a pod. Other init containers have already
// ended.
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

// announceEvents queues Events about a pod's containers after all earlier Events. A kubelet posts Events one at a time.
// A simulated node posts the Events of one call in parallel, because that is cheaper.
func (k *kubelet) announceEvents(life *life, pod *corev1.Pod, events []containerEvent) {
	if !k.plan.postsEvents() {
		return
	}
	ref := referenceTo(pod)
	now := life.clock.Now()
	var bodies [][]byte
	for i, e := range events {
		ref.FieldPath = e.field + "{" + e.container + "}"
		// As in client-go's recorder, an Event's name contains its time, so two Events must not have the same time.
		_, body, err := k.newEvent("kubelet", ref, now.Add(time.Duration(i)), corev1.EventTypeNormal, e.reason, e.message)
		if err != nil {
			k.plan.Log("node %s: %v", k.name, err)
			return
		}
		bodies = append(bodies, body)
	}
	k.queueEvents(life, pod.Namespace, bodies)
}

// announceWarning queues an Event of type Warning about a pod.
func (k *kubelet) announceWarning(life *life, pod *corev1.Pod, reason, message string) {
	if !k.plan.postsEvents() {
		return
	}
	_, body, err := k.newEvent("kubelet", referenceTo(pod), life.clock.Now(), corev1.EventTypeWarning, reason, message)
	if err != nil {
		k.plan.Log("node %s: %v", k.name, err)
		return
	}
	k.queueEvents(life, pod.Namespace, [][]byte{body})
}

func referenceTo(pod *corev1.Pod) corev1.ObjectReference {
	return corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
}

// postsEvents reports whether the nodes post Events about pods.
func (p *plan) postsEvents() bool { return p.everyRequest() || p.Spec.Events && p.own() }

func (k *kubelet) queueEvents(life *life, namespace string, bodies [][]byte) {
	if len(bodies) > 0 {
		k.late(life, func() { life.events.add(func() { k.postEvents(life, namespace, bodies, 1) }) })
	}
}

// newEvent encodes a component's Event about an object. It also returns the Event's name, which contains `now`.
func (k *kubelet) newEvent(component string, of corev1.ObjectReference, now time.Time, kind, reason, message string) (name string, body []byte, err error) {
	at := metav1.NewTime(now)
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: cmp.Or(of.Namespace, metav1.NamespaceDefault), Name: of.Name + "." + strconv.FormatInt(now.UnixNano(), 16)},
		InvolvedObject: of, Reason: reason, Message: message, Type: kind, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source:              corev1.EventSource{Component: component, Host: k.name},
		ReportingController: component, ReportingInstance: k.name,
	}
	if of.Namespace == "" { // about a Node: a cleanup finds it by the run's labels
		e.Labels = k.plan.Labels
	}
	body, err = encode("v1", "Event", e)
	return e.Name, body, err
}

// defaultEvents is the path of the Events in namespace default, which has the Events about Nodes.
const defaultEvents = "/api/v1/namespaces/default/events"

// announceNode posts an Event about the Node. It then increments the Event's count until the count is `times`, because
// a kubelet reports some Events several times.
func (k *kubelet) announceNode(life *life, kind, reason, message string, times int) {
	k.announce(life, k.link, "kubelet", kind, reason, message, times)
}

func (k *kubelet) announce(life *life, by *link, component, kind, reason, message string, times int) {
	if !k.plan.everyRequest() {
		return
	}
	life.events.add(func() {
		ref := corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: k.name, UID: types.UID(k.name)}
		name, body, err := k.newEvent(component, ref, life.clock.Now(), kind, reason, message)
		if err != nil {
			k.plan.Log("node %s: %v", k.name, err)
			return
		}
		_, err = by.do(life.ctx, call{verb: "create", resource: "events", path: defaultEvents, body: body})
		for count := 2; count <= times && err == nil; count++ { // errors are counted
			patch := fmt.Sprintf(`{"count":%d,"lastTimestamp":%q,"message":%q}`, count, life.clock.Now().UTC().Format(time.RFC3339), message)
			_, err = by.do(life.ctx, call{verb: "patch", resource: "events", path: defaultEvents + "/" + name, body: []byte(patch)})
		}
	})
}

// postEvents posts Events in parallel and returns when all requests have ended. If an Event gets no response, it posts
// the Event again after eventSleep. try is the number of this attempt; after attempt eventTries it gives up.
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
