package workload

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// at sets the resourceVersion of a pod, and returns the pod.
func at(version string, p *corev1.Pod) *corev1.Pod {
	p.ResourceVersion = version
	return p
}

func TestTrackerResumesAndRelists(t *testing.T) {
	s := newStub(t)
	w := s.running()
	first := s.watch()
	if first.Version != "10" {
		t.Errorf("the watch starts from %q, but the version of the list is 10", first.Version)
	}
	first.Events <- string(frame(t, "ADDED", at("11", fullPod("a"))))
	await(t, w, func() bool { return w.Live().PodsReady == 1 })
	first.Events <- string(frame(t, "BOOKMARK", at("20", &corev1.Pod{})))
	close(first.Events) // the server ends watches from time to time

	second := s.watch()
	if second.Version != "20" {
		t.Errorf("the watch resumes from %q, but the version of the bookmark is 20", second.Version)
	}
	s.mu.Lock()
	s.pods = []answer{
		{500, &metav1.Status{Status: "Failure", Code: 500, Message: "etcd is slow"}},
		{200, podList("50", fullPod("b"))},
	}
	s.mu.Unlock()
	second.Events <- string(frame(t, "ERROR", &metav1.Status{Status: "Failure", Code: 410, Reason: "Expired"}))

	third := s.watch()
	if third.Version != "50" {
		t.Errorf("after the relist, the watch starts from %q, but the version of the list is 50", third.Version)
	}
	third.Events <- string(frame(t, "DELETED", at("51", fullPod("b"))))
	await(t, w, func() bool { return w.Live().PodsReady == 0 })
	got := w.Results()[""]
	if got.Reconnects != 1 || got.Relists != 1 || got.PodsCreated != 2 || got.PodsDeleted != 2 || got.PodsUnmeasured != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestTrackerListsPageByPage(t *testing.T) {
	s := newStub(t)
	page := podList("10", fullPod("a"))
	page.Continue = "next"
	s.pods = []answer{{200, page}, {200, podList("10", fullPod("b"))}}
	w := s.running()
	await(t, w, w.Synced)
	if got := w.Live().PodsReady; got != 2 {
		t.Errorf("got %d pods from two pages", got)
	}
}

func TestRunFailsWhenTheFirstListIsForbidden(t *testing.T) {
	s := newStub(t)
	s.pods = []answer{{403, &metav1.Status{Status: "Failure", Code: 403, Reason: "Forbidden", Message: "no"}}}
	w := s.workload()
	waited := make(chan error, 1)
	go func() { waited <- w.Wait(t.Context(), func() bool { return false }) }()
	err := w.Run(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "list pods: ") {
		t.Errorf("Run: %v", err)
	}
	if err := <-waited; err == nil || !strings.Contains(err.Error(), "list pods") {
		t.Errorf("Wait returned %v, want the error of the list", err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	w := newStub(t).workload()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Wait(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(w.waiters) != 0 {
		t.Error("a waiter remains after its wait")
	}
}

func TestNodesFailedWakesWhoWaits(t *testing.T) {
	s := newStub(t)
	w := s.running()
	await(t, w, w.Synced)
	done := make(chan error, 1)
	go func() { done <- w.Wait(t.Context(), w.AllNotReady) }()
	w.NodesFailed(time.Now(), []string{"gone"}) // the tracker does not know the node, so it is not Ready
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestDeployAppliesServiceAndDeployment(t *testing.T) {
	s := newStub(t)
	s.patched = answer{200, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1}}}
	w := s.workload()
	err := w.Do(t.Context(), scenario.Action{
		Kind: "deploy", Name: "web", Replicas: 3, Service: true, CPU: "10m", Memory: "16Mi",
		EvictAfter: scenario.Duration(1500 * time.Millisecond),
	})
	if err != nil {
		t.Fatal(err)
	}
	sent := s.requests("PATCH")
	if len(sent) != 2 || sent[0].path != "/api/v1/namespaces/ns/services/web" || sent[1].path != "/apis/apps/v1/namespaces/ns/deployments/web" {
		t.Fatalf("sent %+v", sent)
	}
	if sent[1].contentType != "application/apply-patch+yaml" {
		t.Errorf("content type %s", sent[1].contentType)
	}
	var d appsv1.Deployment
	if err := json.Unmarshal([]byte(sent[1].body), &d); err != nil {
		t.Fatal(err)
	}
	pod := d.Spec.Template
	if *d.Spec.Replicas != 3 || pod.Labels["run"] != "r" || pod.Labels[DeploymentLabel] != "web" || pod.Spec.NodeSelector["run"] != "r" {
		t.Errorf("deployment %+v", d.Spec)
	}
	if !reflect.DeepEqual(d.Spec.Selector.MatchLabels, pod.Labels) {
		t.Errorf("selector %v, but pod labels %v", d.Spec.Selector.MatchLabels, pod.Labels)
	}
	if pod.Spec.AutomountServiceAccountToken != nil || pod.Spec.TerminationGracePeriodSeconds != nil {
		t.Error("the token and the grace period are not upstream's defaults")
	}
	var tolerated []string
	for _, x := range pod.Spec.Tolerations {
		tolerated = append(tolerated, x.Key)
		if x.Effect == "NoExecute" && *x.TolerationSeconds != 2 {
			t.Errorf("toleration %s for %d s, want 2: the API allows only whole seconds", x.Key, *x.TolerationSeconds)
		}
	}
	if got := strings.Join(tolerated, " "); got != "node.kubernetes.io/not-ready node.kubernetes.io/unreachable simulated" {
		t.Errorf("tolerates %s", got)
	}
	if w.Live().PodsWanted != 3 {
		t.Errorf("live %+v", w.Live())
	}
}

func TestActionsAfterADeploy(t *testing.T) {
	s := newStub(t)
	s.patched = answer{200, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1}}}
	w := s.workload()
	for _, a := range []scenario.Action{
		{Kind: "deploy", Name: "web", Replicas: 3},
		{Kind: "rollingUpdate", Name: "web", MaxSurge: "25%", MaxUnavailable: "1"},
		{Kind: "scale", Name: "web", Replicas: 9},
		{Kind: "delete", Name: "web"},
		{Kind: "deploy", Name: "web", Replicas: 1},
	} {
		if err := w.Do(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	sent := s.requests("PATCH")
	for i, want := range map[int]string{
		0: `"stormglass.dev/revision":"1"`,
		1: `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":"25%"}},"template":{"metadata":{"annotations":{"stormglass.dev/revision":"2"}}}}}`,
		2: `{"spec":{"replicas":9}}`,
		3: `"stormglass.dev/revision":"3"`, // never a revision that old pods have
	} {
		if !strings.Contains(sent[i].body, want) {
			t.Errorf("patch %d is %s, want %s", i, sent[i].body, want)
		}
	}
	var removed []string
	for _, r := range s.requests("DELETE") {
		removed = append(removed, r.path)
	}
	if got := strings.Join(removed, " "); got != "/api/v1/namespaces/ns/services/web /apis/apps/v1/namespaces/ns/deployments/web" {
		t.Errorf("deleted %s", got)
	}
	if w.Live().PodsWanted != 1 {
		t.Errorf("live %+v", w.Live())
	}
}

// Do creates the PodGroup before its pods, and deletes it after them.
func TestGangHasItsPodGroup(t *testing.T) {
	s := newStub(t)
	s.patched = answer{200, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "train", Generation: 1}}}
	w := s.workload()
	for _, a := range []scenario.Action{{Kind: "deploy", Name: "train", Replicas: 3, Gang: 2, PriorityClass: "urgent"}, {Kind: "delete", Name: "train"}} {
		if err := w.Do(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	const group = "/apis/scheduling.k8s.io/v1beta1/namespaces/ns/podgroups/train"
	sent, removed := s.requests("PATCH"), s.requests("DELETE")
	if len(sent) != 2 || sent[0].path != group || !strings.Contains(sent[0].body, `"priorityClassName":"urgent"`) || !strings.Contains(sent[0].body, `"gang":{"minCount":2}`) {
		t.Fatalf("sent %+v", sent)
	}
	if !strings.Contains(sent[1].body, `"schedulingGroup":{"podGroupName":"train"}`) {
		t.Errorf("the pods belong to no group: %s", sent[1].body)
	}
	if last := removed[len(removed)-1]; last.path != group {
		t.Errorf("the last deleted object is %s", last.path)
	}
}

// Do creates the ResourceClaimTemplate before its pods, and deletes it with them.
func TestDevicesAreClaimedByATemplate(t *testing.T) {
	s := newStub(t)
	s.patched = answer{200, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "train", Generation: 1}}}
	w := s.workload()
	w.options.DeviceClass = "ours"
	for _, a := range []scenario.Action{{Kind: "deploy", Name: "train", Replicas: 3, Devices: 4}, {Kind: "delete", Name: "train"}} {
		if err := w.Do(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	const template = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaimtemplates/train"
	sent, removed := s.requests("PATCH"), s.requests("DELETE")
	if len(sent) != 2 || sent[0].path != template || !strings.Contains(sent[0].body, `"exactly":{"deviceClassName":"ours","allocationMode":"ExactCount","count":4}`) {
		t.Fatalf("sent %+v", sent)
	}
	for _, want := range []string{`"resourceClaims":[{"name":"devices","resourceClaimTemplateName":"train"}]`, `"claims":[{"name":"devices"}]`} {
		if !strings.Contains(sent[1].body, want) {
			t.Errorf("%s is missing in %s", want, sent[1].body)
		}
	}
	if last := removed[len(removed)-1]; last.path != template {
		t.Errorf("the last deleted object is %s", last.path)
	}
}

func TestErrorsNameVerbAndObject(t *testing.T) {
	s := newStub(t)
	s.patched = answer{403, &metav1.Status{Status: "Failure", Code: 403, Reason: "Forbidden", Message: "no such right"}}
	err := s.workload().Do(t.Context(), scenario.Action{Kind: "deploy", Name: "web", Replicas: 1})
	if err == nil || err.Error() != "patch deployment ns/web: no such right" {
		t.Errorf("got %v", err)
	}
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	r := prometheus.NewRegistry()
	o := Options{Namespace: "ns", Labels: map[string]string{"run": "r"}, Registerer: r}
	w, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, o)
	if err != nil {
		t.Fatal(err)
	}
	w.change(func(tr *tracker) {
		tr.want("web", 2, "1")
		tr.saw(podObject("a", ""), time.Unix(1, 0), false)
		tr.saw(podObject("a", "n"), time.Unix(3, 0), false)
	})
	want := `
# HELP stormglass_workload_pods_ready Pods that are Ready, on nodes that have not failed.
# TYPE stormglass_workload_pods_ready gauge
stormglass_workload_pods_ready 1
# HELP stormglass_workload_pods_wanted Pods that the run's workloads require: the requested replicas, or more if a CPU demand needs more; one per node for a DaemonSet; the missing completions of a Job.
# TYPE stormglass_workload_pods_wanted gauge
stormglass_workload_pods_wanted 2
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "stormglass_workload_pods_ready", "stormglass_workload_pods_wanted"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(r, "stormglass_pod_startup_seconds"); err != nil || n != 1 {
		t.Errorf("startup histogram: %d series, %v", n, err)
	}
	if _, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, o); err == nil {
		t.Error("New accepts a second workload on one registry")
	}
}
