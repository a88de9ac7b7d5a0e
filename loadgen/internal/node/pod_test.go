package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// withToken adds the volume to a pod that ServiceAccount admission adds.
func withToken(p *corev1.Pod) {
	seconds := int64(3607)
	p.Spec.ServiceAccountName = "default"
	p.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &seconds, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
		},
	}}}}
}

func started(t *testing.T, change func(*Config)) (*stub, *Fleet) {
	t.Helper()
	s := newStub(t)
	f := s.fleet(1, change)
	must(t, f.Start(t.Context()))
	return s, f
}

func TestPodFromBindingToItsEnd(t *testing.T) {
	s, f := started(t, nil)
	always := corev1.ContainerRestartPolicyAlways
	s.bind("sg-0", "web", func(p *corev1.Pod) {
		withToken(p)
		p.Generation = 3
		p.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d"})
	})
	s.await("it is Ready", func() bool { return isReady(s.pods["web"]) })
	s.await("its ConfigMap is watched", func() bool { return len(s.open("configmaps")) == 1 })

	var creating, patch corev1.Pod
	var writes []request
	s.locked(func() {
		var token authenticationv1.TokenRequest
		s.decode(s.seen("POST", "/namespaces/ns/serviceaccounts/default/token")[0].body, &token)
		if ref := token.Spec.BoundObjectRef; ref.UID != "uid-web" || ref.Kind != "Pod" || *token.Spec.ExpirationSeconds != 3607 {
			t.Errorf("token request %+v", token.Spec)
		}
		if w := s.open("configmaps")[0]; w.selector != "metadata.name=kube-root-ca.crt" {
			t.Errorf("the ConfigMap's watch selects %q", w.selector)
		}
		writes = s.seen("PATCH", "/pods/web/status")
		must(t, json.Unmarshal(writes[0].body, &creating))
		must(t, json.Unmarshal(writes[len(writes)-1].body, &patch))
	})
	if c := creating.Status; c.Phase != corev1.PodPending || c.StartTime == nil || c.ContainerStatuses[0].State.Waiting.Reason != "PodInitializing" {
		t.Errorf("the first status is %+v", c)
	}
	st := patch.Status
	if len(writes) != 2 || !st.StartTime.Equal(creating.Status.StartTime) || patch.UID != "uid-web" || st.Phase != corev1.PodRunning || st.ObservedGeneration != 3 || st.StartTime == nil {
		t.Errorf("%d writes; the first: uid %s, status %+v", len(writes), patch.UID, st)
	}
	for _, c := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, corev1.PodReadyToStartContainers, corev1.PodScheduled} {
		if got := condition(&patch, c); got == nil || got.Status != corev1.ConditionTrue {
			t.Errorf("condition %s is %v", c, got)
		}
	}
	if len(st.ContainerStatuses) != 2 || st.ContainerStatuses[1].State.Running == nil || !st.ContainerStatuses[1].Ready {
		t.Errorf("containers %+v", st.ContainerStatuses)
	}
	if in := st.InitContainerStatuses; len(in) != 2 || in[0].State.Terminated == nil || in[1].State.Running == nil {
		t.Errorf("init containers %+v", in)
	}
	if st.PodIP == "" || st.HostIP == "" || st.PodIPs[0].IP != st.PodIP {
		t.Errorf("addresses %q %q %v", st.PodIP, st.HostIP, st.PodIPs)
	}

	s.deletePod("web")
	s.await("it is gone", func() bool { return s.pods["web"] == nil })
	s.await("its ConfigMap is watched no more", func() bool { return len(s.open("configmaps")) == 0 })
	var options metav1.DeleteOptions
	s.locked(func() {
		writes = s.seen("PATCH", "/pods/web/status")
		patch = corev1.Pod{}
		must(t, json.Unmarshal(writes[2].body, &patch))
		s.decode(s.seen("DELETE", "/pods/web")[0].body, &options)
	})
	if c := patch.Status.ContainerStatuses[0]; patch.Status.Phase != corev1.PodSucceeded || c.State.Terminated == nil || c.Ready {
		t.Errorf("the last status is %s, %+v", patch.Status.Phase, c)
	}
	if *options.GracePeriodSeconds != 0 || *options.Preconditions.UID != "uid-web" {
		t.Errorf("the deletion had the options %+v", options)
	}
	eventually(t, "it is counted", func() bool {
		r := f.Results()
		return r.PodsStarted == 1 && r.PodsStopped == 1 && f.Live().PodsRunning == 0
	})
}

func TestPodAddressesAreUniqueAndReused(t *testing.T) {
	s, f := started(t, nil)
	size := int(f.kubelets[0].ips.size())
	priority := int32(systemCritical)
	critical := func(p *corev1.Pod) { p.Spec.Priority = &priority } // admitted to a full node
	seen := map[string]bool{}
	names := []string{}
	for i := range size {
		name := fmt.Sprintf("pod-%d", i)
		names = append(names, name)
		s.bind("sg-0", name, critical)
	}
	eventually(t, "all run", func() bool { return f.Live().PodsRunning == size })
	s.locked(func() {
		for _, name := range names {
			seen[s.pods[name].Status.PodIP] = true
		}
	})
	if len(seen) != size {
		t.Fatalf("%d pods have %d addresses", size, len(seen))
	}
	s.deletePod(names[0])
	s.await("one is gone", func() bool { return s.pods[names[0]] == nil })
	s.bind("sg-0", "next", critical)
	s.await("its address is free again", func() bool {
		return seen[s.pods["next"].Status.PodIP]
	})
}

func TestRefusedTokenAndStatusAreTriedAgain(t *testing.T) {
	s, f := started(t, nil)
	refused := map[string]bool{}
	s.update(func() {
		s.answer = func(w http.ResponseWriter, r request) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			last := r.path[strings.LastIndex(r.path, "/"):]
			if running := last == "/status" && podAddress(r) != ""; (last == "/token" || running) && !refused[last] {
				refused[last] = true
				refuse(w, 403, metav1.StatusReasonForbidden, "no relationship found between node and this object")
				return true
			}
			return false
		}
	})
	s.bind("sg-0", "web", withToken)
	eventually(t, "it runs", func() bool { return f.Live().PodsRunning == 1 })
	errs := f.Results().Errors
	if errs["create serviceaccounts/token 403"] != 1 || errs["patch pods/status 403"] != 1 {
		t.Errorf("errors %v", errs)
	}
}

func TestSharedPodStartsWithoutAForbiddenToken(t *testing.T) {
	s, f := started(t, func(c *Config) { c.Spec.Fidelity = Shared })
	s.update(func() {
		s.answer = func(w http.ResponseWriter, r request) bool {
			if !strings.HasSuffix(r.path, "/token") {
				return false
			}
			refuse(w, 403, metav1.StatusReasonForbidden, "cannot create serviceaccounts/token in the namespace")
			return true
		}
	})
	s.bind("sg-0", "web", withToken)
	eventually(t, "it runs", func() bool { return f.Live().PodsRunning == 1 })
}

func TestPodStartsAfterItsTime(t *testing.T) {
	s, f := started(t, func(c *Config) { c.Spec.PodStart = scenario.Spread{Median: time.Hour, P99: time.Hour} })
	s.bind("sg-0", "slow", nil)
	s.bind("sg-0", "done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	s.deletePod("slow")
	s.await("a pod that never started is gone", func() bool { return s.pods["slow"] == nil })
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.seen("PATCH", "/pods/done/status")); n != 0 || f.Results().PodsStarted != 0 {
		t.Errorf("the node sent %d writes to a finished pod and started %d pods", n, f.Results().PodsStarted)
	}
}

func TestReadinessGateHoldsAPodBack(t *testing.T) {
	s, f := started(t, nil)
	unready := func(in time.Duration) int { return f.ledger.unready.count(time.Now().Add(in)) }
	s.bind("sg-0", "gated", func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example/gate"}}
	})
	s.await("it runs, not Ready", func() bool {
		p := s.pods["gated"]
		return p.Status.Phase == corev1.PodRunning && !isReady(p)
	})
	if now, later := unready(0), unready(time.Minute); now != 0 || later != 1 {
		t.Errorf("%d pods count as not Ready, and %d in a minute, want 0 and 1", now, later)
	}
	s.changePod("gated", func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "example/gate", Status: corev1.ConditionTrue})
	})
	s.await("it is Ready once the gate opens", func() bool { return isReady(s.pods["gated"]) && unready(time.Minute) == 0 })
}

// A pod that its node has removed and a finalizer holds counts until it disappears.
func TestFinalizerHoldsAPod(t *testing.T) {
	s, f := started(t, nil)
	held := func(in time.Duration) int { return f.ledger.held.count(time.Now().Add(in)) }
	for _, name := range []string{"held", "free"} {
		s.bind("sg-0", name, func(p *corev1.Pod) {
			if name == "held" {
				p.Finalizers = []string{"example.com/wait"}
			}
		})
		s.await("it is Ready", func() bool { return isReady(s.pods[name]) })
		s.deletePod(name)
	}
	s.await("one of two counts as held, in a while", func() bool { return s.pods["free"] == nil && held(time.Minute) == 1 })
	if now := held(0); now != 0 {
		t.Errorf("%d pods count as held at once, want 0", now)
	}
	s.removePod("held")
	s.await("nothing is held", func() bool { return held(time.Minute) == 0 })
}

// If a node's pods have more ConfigMaps than a connection has streams, its watches take another connection, and its
// requests continue.
func TestNodeOfManyConfigMapsTakesAnotherConnection(t *testing.T) {
	s, _ := started(t, nil)
	const pods, each = 5, 60 // the stub's connections have 250 streams
	for i := range pods {
		s.bind("sg-0", fmt.Sprintf("web-%d", i), func(p *corev1.Pod) {
			for j := range each {
				source := corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprintf("c-%d-%d", i, j)}}
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: source.Name, VolumeSource: corev1.VolumeSource{ConfigMap: &source}})
			}
		})
	}
	s.await("all ConfigMaps are watched", func() bool { return len(s.open("configmaps")) == pods*each })
	s.bind("sg-0", "last", nil)
	s.await("a further pod is Ready", func() bool { return isReady(s.pods["last"]) })
}
