package node

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestNodesRegisterAsKubeletsDo(t *testing.T) {
	s := newStub(t)
	registry := prometheus.NewPedanticRegistry()
	f := s.fleet(3, func(c *Config) {
		c.Taints = []corev1.Taint{{Key: "stormglass.example/simulated", Effect: corev1.TaintEffectNoSchedule}}
		c.Registerer = registry
	})
	must(t, f.Start(t.Context()))
	s.await("six watches for each of three nodes", func() bool { return len(s.watches) == 18 })

	s.locked(func() {
		for _, name := range f.Names() {
			n, l := s.nodes[name], s.leases[name]
			if n == nil || l == nil {
				t.Fatalf("%s has no Node or no Lease", name)
			}
			for key, want := range map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", "stormglass.example/run": "r1",
			} {
				if n.Labels[key] != want {
					t.Errorf("label %s of %s is %q, want %q", key, name, n.Labels[key], want)
				}
			}
			if len(n.Spec.Taints) != 1 || n.Status.Allocatable.Cpu().String() != "4" || n.Status.Allocatable.Pods().Value() != 10 {
				t.Errorf("%s: taints %v, allocatable %v", name, n.Spec.Taints, n.Status.Allocatable)
			}
			if c := n.Status.Conditions[len(n.Status.Conditions)-1]; c.Type != corev1.NodeReady || c.Status != corev1.ConditionTrue {
				t.Errorf("%s: the last condition is %v", name, c)
			}
			if *l.Spec.LeaseDurationSeconds != 40 || *l.Spec.HolderIdentity != name || l.OwnerReferences[0].UID != n.UID {
				t.Errorf("%s: lease %v, owner %v", name, l.Spec, l.OwnerReferences)
			}
		}
		for _, r := range s.requests {
			for _, name := range f.Names() {
				if strings.Contains(r.path+r.query, name) && r.user != "system:node:"+name {
					t.Errorf("%s %s as %s", r.method, r.path, r.user)
				}
			}
		}
		zones := map[string]bool{}
		for _, n := range s.nodes {
			zones[n.Labels[corev1.LabelTopologyZone]] = true
		}
		if len(zones) != 2 || len(s.conns) != 3 {
			t.Errorf("%d zones, want 2; %d connections, want one per node", len(zones), len(s.conns))
		}
	})

	eventually(t, "the fleet knows", func() bool {
		l := f.Live()
		return l.Ready == 3 && l.Registered == 3 && l.Watches == 18
	})
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP stormglass_nodes_ready Simulated nodes that are Ready.
# TYPE stormglass_nodes_ready gauge
stormglass_nodes_ready 3
`), "stormglass_nodes_ready"); err != nil {
		t.Error(err)
	}
	f.Stop(t.Context())
	s.await("every connection is closed", func() bool { return len(s.conns) == 0 })
	if r := f.Results(); r.Count != 3 || r.Watches != 18 || r.ReadySeconds <= 0 {
		t.Errorf("results = %+v", r)
	}
}

func TestRefusedRegistrationEndsTheStart(t *testing.T) {
	for _, test := range []struct {
		code   int
		reason metav1.StatusReason
		want   string
	}{
		{403, metav1.StatusReasonForbidden, "register node sg-0: create nodes: nodes is refused (fidelity"},
		{401, metav1.StatusReasonUnauthorized, "does not accept the nodes' certificates"},
	} {
		s := newStub(t)
		s.answer = func(w http.ResponseWriter, r request) bool {
			if r.method != "POST" {
				return false
			}
			refuse(w, test.code, test.reason, "nodes is refused")
			return true
		}
		f := s.fleet(1, nil)
		err := f.Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("after a %d: %v\nwant one line with %q", test.code, err, test.want)
		}
	}
}

// Nodes wait longer for an overloaded server (429) than for one that fails (503).
func TestThrottledRegistrationGoesOn(t *testing.T) {
	for code, want := range map[int]bool{429: true, 503: false} {
		s := newStub(t)
		clock := newFakeClock(time.Now())
		begin := clock.Now()
		s.answer = func(w http.ResponseWriter, r request) bool {
			if !strings.HasSuffix(r.path, "/nodes") || r.method != "POST" || clock.Since(begin) > 3*registerPatience {
				return false
			}
			refuse(w, code, metav1.StatusReason(http.StatusText(code)), "not now")
			return true
		}
		f := s.fleet(1, func(c *Config) { c.clock = clock })
		started := make(chan error, 1)
		go func() { started <- f.Start(t.Context()) }()
		var err error
		eventually(t, "the start ends", func() bool {
			if clock.HasWaiters() { // otherwise the request is in flight
				clock.Step(time.Second)
			}
			select {
			case err = <-started:
				return true
			default:
				return false
			}
		})
		if (err == nil) != want {
			t.Errorf("refused with %d for three minutes: %v", code, err)
		}
	}
}

func TestForeignNodeIsNotTakenOver(t *testing.T) {
	s := newStub(t)
	s.answer = func(w http.ResponseWriter, r request) bool {
		switch {
		case r.method == "POST" && strings.HasSuffix(r.path, "/nodes"):
			refuse(w, 409, metav1.StatusReasonAlreadyExists, "exists")
		case r.method == "GET" && strings.HasSuffix(r.path, "/nodes/sg-0"):
			reply(w, 200, "v1", "Node", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sg-0", UID: "theirs"}})
		default:
			return false
		}
		return true
	}
	f := s.fleet(1, nil)
	if err := f.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "already exists, but without this run's labels") {
		t.Errorf("start: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.seen("PATCH", "/status")) + len(s.leases); n != 0 {
		t.Errorf("the fleet sent %d writes to another owner's node", n)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	s := newStub(t)
	asked := make(chan struct{}, 100)
	s.answer = func(w http.ResponseWriter, r request) bool {
		asked <- struct{}{}
		refuse(w, 503, metav1.StatusReasonServiceUnavailable, "not yet")
		return true
	}
	f := s.fleet(1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if err := f.Start(ctx); err == nil || !strings.Contains(err.Error(), "0 of 1 nodes are Ready") {
		t.Errorf("start: %v", err)
	}
}

func TestFailedNodesGoSilentAndComeBack(t *testing.T) {
	s := newStub(t)
	f := s.fleet(10, nil)
	must(t, f.Start(t.Context()))
	for _, name := range f.Names() {
		s.bind(name, "pod-"+name, nil)
	}
	eventually(t, "ten pods run", func() bool { return f.Live().PodsRunning == 10 })
	failed := f.Fail(0.3)
	if len(failed) != 3 {
		t.Fatalf("%d nodes failed, want 3", len(failed))
	}
	s.await("their connections are gone", func() bool { return len(s.conns) == 7 })
	again := s.fleet(10, func(c *Config) { c.NamePrefix = "sg-" }).Fail(0.3)
	if !slices.Equal(failed, again) {
		t.Errorf("the same seed failed %v, then %v", failed, again)
	}
	if l := f.Live(); l.Ready != 7 || l.Failed != 3 {
		t.Errorf("Live() = %+v", l)
	}

	// While the nodes were away, one pod was marked not Ready, one was deleted, and one was removed entirely.
	s.changePod("pod-"+failed[0], func(p *corev1.Pod) {
		for i := range p.Status.Conditions {
			p.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	})
	s.deletePod("pod-" + failed[1])
	s.removePod("pod-" + failed[2])
	var address string
	s.locked(func() {
		address = s.pods["pod-"+failed[0]].Status.PodIP
	})
	must(t, f.Recover())
	s.await("the pod is Ready again at its old address, and the deleted one is gone", func() bool {
		p := s.pods["pod-"+failed[0]]
		return s.pods["pod-"+failed[1]] == nil && isReady(p) && p.Status.PodIP == address
	})
	eventually(t, "all are Ready and eight pods run", func() bool {
		l := f.Live()
		return l.Ready == 10 && l.Failed == 0 && l.PodsRunning == 8
	})
}

func TestSharedFidelityNeedsOneWatch(t *testing.T) {
	s := newStub(t)
	f := s.fleet(20, func(c *Config) {
		c.Spec.Fidelity, c.Identities = Shared, NewShared(s.config())
	})
	must(t, f.Start(t.Context()))
	s.await("one watch of pods and one of nodes", func() bool { return len(s.open("pods")) == 1 && len(s.watches) == 2 })
	s.bind("sg-3", "a", nil)
	s.bind("sg-17", "b", nil)
	s.bind("somebody-elses", "c", nil)
	s.await("the fleet's pods run", func() bool { return isReady(s.pods["a"]) && isReady(s.pods["b"]) })
	s.deletePod("a")
	s.await("a is gone", func() bool { return s.pods["a"] == nil })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen("PATCH", "/pods/c/status")) > 0 {
		t.Error("the fleet changed another owner's pod")
	}
	if len(s.conns) > sharedConnections {
		t.Errorf("%d connections", len(s.conns))
	}
}

func TestNodeTakenForDeadReportsReady(t *testing.T) {
	clock := newFakeClock(time.Now())
	s, f := started(t, func(c *Config) { c.clock = clock })
	k := f.kubelets[0]
	k.sawNode(view{})
	if f.Live().Ready != 0 {
		t.Error("the node still counts as Ready")
	}
	clock.Step(statusUpdate)
	s.await("it reports Ready within ten seconds", func() bool { return len(s.seen("PATCH", "/nodes/sg-0/status")) == 2 })
	var patch corev1.Node
	s.locked(func() {
		must(t, json.Unmarshal(s.seen("PATCH", "/nodes/sg-0/status")[1].body, &patch))
	})
	if c := patch.Status.Conditions[3]; c.Status != corev1.ConditionTrue || c.LastTransitionTime.IsZero() {
		t.Errorf("the node reported %v, want Ready", c)
	}
}

func TestConfigIsChecked(t *testing.T) {
	s := newStub(t)
	ids := NewShared(s.config())
	good := s.fleet(1, nil).plan.Config
	good.Identities = ids
	for what, change := range map[string]func(*Config){
		"count is 0":               func(c *Config) { c.Spec.Count = 0 },
		`fidelity "x" is unknown`:  func(c *Config) { c.Spec.Fidelity = "x" },
		`cpu "four"`:               func(c *Config) { c.Spec.CPU = "four" },
		"name prefix":              func(c *Config) { c.NamePrefix = "No_" },
		"Config.Identities is nil": func(c *Config) { c.Identities = nil },
		"lower nodes.pods":         func(c *Config) { c.Spec.Count, c.Spec.Pods = 20000, 110 },
		"labels":                   func(c *Config) { c.Labels = map[string]string{"no value": "x"} },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error with %q, got %v", what, err)
		}
	}
}
