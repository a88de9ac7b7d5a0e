package main

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

func TestStatusesAreAligned(t *testing.T) {
	lines := func(text string) (all []line) {
		for word := range strings.FieldsSeq(text) {
			all = append(all, line{text: word})
		}
		return all
	}
	for _, test := range []struct{ real, simulated, want string }{
		{"a b c", "a b c", "a b c"},
		{"a b c", "a c", "a b- c"},
		{"a c", "a b c", "a -b c"},
		{"a b d", "a c d", "a b- -c d"},
		{"", "a", "-a"},
		{"a b a b", "b a b", "a- b a b"},
	} {
		var got []string
		for _, p := range align(lines(test.real), lines(test.simulated)) {
			switch {
			case p.real == nil:
				got = append(got, "-"+p.simulated.text)
			case p.simulated == nil:
				got = append(got, p.real.text+"-")
			default:
				got = append(got, p.real.text)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%q beside %q: %q, want %q", test.real, test.simulated, got, test.want)
		}
	}
}

func TestStatusInALine(t *testing.T) {
	yes := true
	failed := &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}
	p := &corev1.Pod{Status: corev1.PodStatus{
		Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
			{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse},
		},
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "i", Ready: true, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}},
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "a", RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: failed}},
			{Name: "b", Ready: true, Started: &yes, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		},
	}}
	const want = "Running [initialized -ready:ContainersNotReady] i=Completed(0)+ready a=CrashLoopBackOff x2 after Error(1) b=running+started+ready"
	if got := describe(p); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	now := metav1.Now()
	p.DeletionTimestamp = &now
	if got := describe(p); !strings.HasPrefix(got, "Running (deleted) ") {
		t.Errorf("deleted: %s", got)
	}
}

func TestPodOfARequest(t *testing.T) {
	event := []byte(`{"involvedObject": {"kind": "Pod", "name": "web"}}`)
	for _, test := range []struct {
		verb, resource, name string
		body                 []byte
		want                 string
	}{
		{"get", "pods", "web", nil, "web"},
		{"create", "events", "", event, "web"},
		{"create", "events", "", []byte(`{"involvedObject": {"kind": "Node", "name": "web"}}`), ""},
		{"patch", "events", "web.17f3", nil, "web"},
		{"create", "serviceaccounts", "default", nil, ""},
	} {
		e := &auditv1.Event{Verb: test.verb, ObjectRef: &auditv1.ObjectReference{Resource: test.resource, Name: test.name}}
		if test.body != nil {
			e.RequestObject = &runtime.Unknown{Raw: test.body}
		}
		if got := podOf(e); got != test.want {
			t.Errorf("%s: %q, want %q", fmt.Sprint(test.verb, " ", test.resource), got, test.want)
		}
	}
}
