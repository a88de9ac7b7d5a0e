package job

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stormglass/stormglass/loadgen/internal/workers"
)

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Image: "registry.example.com/loadgen:v1", Namespace: "load", PullSecret: "registry", Resources: "memory=1Gi", NodeSelector: "pool=load,zone="}
	for want, change := range map[string]func(*Options){
		"":                                func(*Options) {},
		"--image is missing":              func(o *Options) { o.Image = "" },
		"is not an image name":            func(o *Options) { o.Image = "a b" },
		"is not a namespace name":         func(o *Options) { o.Namespace = "Load" },
		"requires --workers-namespace":    func(o *Options) { o.Namespace = "" },
		"is not a Secret name":            func(o *Options) { o.PullSecret = "_" },
		`"cpu" is not an amount`:          func(o *Options) { o.Resources = "cpu" },
		`"cpu=0" is not an amount`:        func(o *Options) { o.Resources = "cpu=0" },
		`"gpu=1" is not an amount of cpu`: func(o *Options) { o.Resources = "cpu=1,gpu=1" },
		`"pool" is not a label`:           func(o *Options) { o.NodeSelector = "pool" },
	} {
		o := good
		change(&o)
		if err := o.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check of %+v: %v, want %q", o, err, want)
		}
	}
}

// Manifests for users contain the same Job as a run, and no credentials.
func TestManifests(t *testing.T) {
	m := Manifests{Options: Options{Image: "loadgen:v1", NodeSelector: "pool=load"}, Count: 3, Coordinator: "10.0.0.5:7443"}
	text, err := m.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"kind: Namespace", "pod-security.kubernetes.io/enforce: restricted", "kind: ServiceAccount", "automountServiceAccountToken: false",
		"kind: Job", "completionMode: Indexed", "completions: 3", "parallelism: 3", "- --coordinator=10.0.0.5:7443", "image: loadgen:v1", "pool: load",
		"runAsNonRoot: true", "readOnlyRootFilesystem: true", "secretName: stormglass-workers", "GOMEMLIMIT",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the manifests do not contain %q:\n%s", want, text)
		}
	}
	for _, not := range []string{"kind: Secret", "null", "status: {}"} {
		if strings.Contains(string(text), not) {
			t.Errorf("%q in\n%s", not, text)
		}
	}
	m.Coordinator, m.Namespace = "", "load"
	if text, err = m.YAML(); err != nil || !strings.Contains(string(text), "--listen=127.0.0.1:7443") || strings.Contains(string(text), "kind: Namespace") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestManifestsAreChecked(t *testing.T) {
	good := Manifests{Options: Options{Image: "loadgen:v1"}, Count: 2, Coordinator: "10.0.0.5:7443"}
	for want, change := range map[string]func(*Manifests){
		"":                                     func(*Manifests) {},
		"--workers 257: must be between 1 and": func(m *Manifests) { m.Count = 257 },
		"--workers 0: must be between 1 and":   func(m *Manifests) { m.Count = 0 },
		`"10.0.0.5" is not HOST:PORT`:          func(m *Manifests) { m.Coordinator = "10.0.0.5" },
		`"10.0.0.5:99999" is not HOST:`:        func(m *Manifests) { m.Coordinator = "10.0.0.5:99999" },
		`"foo=" is not a taint`:                func(m *Manifests) { m.Tolerations = "foo=" },
	} {
		m := good
		change(&m)
		if err := m.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check of %+v: %v, want %q", m, err, want)
		}
	}
}

// watched is a Job whose pods the test makes up.
type watched struct {
	*runJob
	told, ends []string
}

func newWatched() *watched {
	w := &watched{runJob: &runJob{
		setup:      setup{Options: Options{Image: "loadgen:v1"}, name: "stormglass-workers-r1", namespace: "load", coordinator: "10.0.0.5:7443"},
		Invitation: workers.Invitation{}, reached: map[types.UID]bool{}, gone: map[types.UID]bool{},
	}}
	w.Tell = func(format string, args ...any) { w.told = append(w.told, fmt.Sprintf(format, args...)) }
	w.ended = func(index int, why error) { w.ends = append(w.ends, fmt.Sprintf("%d: %v", index, why)) }
	return w
}

func pod(change func(*corev1.PodStatus)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "load", Name: "w-1-x", UID: "u", Annotations: map[string]string{"batch.kubernetes.io/job-completion-index": "1"},
	}}
	p.Spec.NodeName = "n7"
	change(&p.Status)
	return p
}

func container(state corev1.ContainerState) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) { s.ContainerStatuses = []corev1.ContainerStatus{{State: state}} }
}

// seePod reports a problem with a pod once, in one line.
func TestStatesOfPods(t *testing.T) {
	waiting := func(reason, message string) func(*corev1.PodStatus) {
		return container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
	}
	ended := func(code int32, reason, message string) func(*corev1.PodStatus) {
		return container(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}})
	}
	placed := func(since time.Duration) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: time.Now().Add(-since)}}}
	}
	drained := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Message: "Eviction API:\nevicting"}
	for name, c := range map[string]struct {
		status func(*corev1.PodStatus)
		end    string
		told   string
	}{
		"pulling":     {status: waiting("ErrImagePull", "try again")},
		"no image":    {waiting("ImagePullBackOff", "Back-off\npulling"), "1: pod load/w-1-x cannot run image loadgen:v1: ImagePullBackOff: Back-off pulling (with --image, name an image that the nodes can pull", ""},
		"another end": {ended(2, "Error", "joining\nloadgen: worker 1 was refused"), "1: pod load/w-1-x: exit code 2: worker 1 was refused", ""},
		"memory":      {ended(137, "OOMKilled", ""), "1: pod load/w-1-x: OOMKilled, exit code 137", ""},
		"no room":     {func(s *corev1.PodStatus) { s.Phase, s.Reason, s.Message = corev1.PodFailed, "OutOfcpu", "too little" }, "1: pod load/w-1-x: OutOfcpu too little", ""},
		"drained":     {func(s *corev1.PodStatus) { s.Phase, s.Conditions = corev1.PodFailed, []corev1.PodCondition{drained} }, "", "pod load/w-1-x has ended: Eviction API: evicting"},
		"runs":        {status: func(s *corev1.PodStatus) { s.Phase = corev1.PodRunning }},
		"no node": {func(s *corev1.PodStatus) {
			s.Phase, s.Conditions = corev1.PodPending, []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available"}}
		}, "", "pod load/w-1-x is not scheduled: 0/2 nodes are available (use fewer --workers"},
		"dead node": {func(s *corev1.PodStatus) { s.Phase, s.Conditions = corev1.PodPending, placed(time.Minute) }, "", "pod load/w-1-x is on node n7, whose kubelet has not started it"},
		"new":       {status: func(s *corev1.PodStatus) { s.Phase, s.Conditions = corev1.PodPending, placed(0) }},
		"taken up": {status: func(s *corev1.PodStatus) {
			s.Phase, s.Conditions, s.StartTime = corev1.PodPending, placed(time.Minute), &metav1.Time{Time: time.Now()}
		}},
	} {
		w := newWatched()
		p := pod(c.status)
		w.seePod(p)
		w.seePod(p)
		check(t, name, w.ends, c.end, 1)
		check(t, name, w.told, c.told, 2)
	}
	w := newWatched()
	p := pod(ended(1, "", ""))
	p.Annotations = nil
	if w.seePod(p); len(w.ends) > 0 {
		t.Errorf("seePod reports a pod without an index: %q", w.ends)
	}
}

func check(t *testing.T, name string, got []string, want string, most int) {
	t.Helper()
	if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || len(got) > most || !strings.HasPrefix(got[0], want)) {
		t.Errorf("%s: reported %q, want %q", name, got, want)
	}
}

// A permanent refusal of pods ends the run. A temporary refusal is only reported to the user.
func TestRefusalsOfPods(t *testing.T) {
	for message, want := range map[string]string{
		`pods "w-0-x" is forbidden: exceeded quota: small, requested: pods=1`:     "raise the quota",
		`pods "w-0-x" is forbidden: violates PodSecurity "restricted:latest": x`:  "allows the Pod Security profile restricted",
		`pods "w-0-x" is forbidden: ValidatingAdmissionPolicy 'p' denied request`: "ask the administrator",
		`Internal error occurred: failed calling webhook "w": timeout`:            "",
	} {
		w := newWatched()
		w.seeRefusal(message)
		if want == "" && (len(w.told) != 1 || len(w.ends) != 0) || want != "" && (len(w.ends) != 1 || !strings.Contains(w.ends[0], want)) {
			t.Errorf("%s: reported %q, failures %q", message, w.told, w.ends)
		}
	}
}
