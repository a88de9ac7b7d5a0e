package node

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// withDevices makes the stub keep ResourceSlices and serve the claim of pod web.
func (s *stub) withDevices(slices map[string]*resourcev1.ResourceSlice, claim *resourcev1.ResourceClaim) {
	s.update(func() {
		s.answer = func(w http.ResponseWriter, r request) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			switch {
			case r.method == "POST" && strings.HasSuffix(r.path, "/resourceslices"):
				var slice resourcev1.ResourceSlice
				s.decode(r.body, &slice)
				if slices[slice.Name] != nil {
					refuse(w, 409, metav1.StatusReasonAlreadyExists, "resourceslices already exists")
					return true
				}
				slices[slice.Name] = &slice
				reply(w, 201, resourceGroup, "ResourceSlice", &slice)
			case r.method == "DELETE" && strings.HasSuffix(r.path, "/resourceslices"):
				clear(slices)
				reply(w, 200, "v1", "Status", &metav1.Status{Status: "Success"})
			case strings.HasSuffix(r.path, "/namespaces/ns/resourceclaims/web-devices"):
				reply(w, 200, resourceGroup, "ResourceClaim", claim)
			default:
				return false
			}
			return true
		}
	})
}

// withClaim gives a pod a claim made from a template, as the controller manager does.
func withClaim(p *corev1.Pod) {
	template, name := "web", "web-devices"
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimTemplateName: &template}}
	p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "devices", ResourceClaimName: &name}}
}

// claimed returns the claim of pod web, with a device of a driver allocated and reserved.
func claimed(driver string) *resourcev1.ResourceClaim {
	controller := true
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "web-devices", Namespace: "ns",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "uid-web", Controller: &controller}},
	}}
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "web", UID: "uid-web"}}
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "device", Driver: driver, Pool: "sg-0", Device: "gpu-0"}},
	}}
	return c
}

func TestNodePublishesItsDevices(t *testing.T) {
	for _, fidelity := range Fidelities() {
		t.Run(fidelity, func(t *testing.T) {
			s := newStub(t)
			published := map[string]*resourcev1.ResourceSlice{}
			s.withDevices(published, nil)
			f := s.fleet(2, func(c *Config) {
				c.Spec.Fidelity = fidelity
				c.Spec.Pools = []scenario.NodePool{{Name: "plain"}, {Name: "gpu", Devices: 8}}
			})
			must(t, f.Start(t.Context()))
			if fidelity != Shared {
				s.await("the driver watches its slices", func() bool {
					return len(s.open("resourceslices")) == 1 && strings.HasPrefix(s.open("resourceslices")[0].selector, "spec.driver=gpu.stormglass.dev,spec.nodeName=sg-")
				})
			}
			if fidelity == Kubelet {
				s.await("each kubelet has removed slices of an earlier life", func() bool { return len(s.seen("DELETE", "/resourceslices")) == 2 })
			}
			s.await("the node with devices publishes a slice", func() bool { return len(published) > 0 })
			s.locked(func() {
				if len(published) != 1 {
					t.Fatalf("got %d slices for one node with devices", len(published))
				}
				for _, slice := range published {
					node := *slice.Spec.NodeName
					if s.nodes[node].Labels[corev1.LabelInstanceTypeStable] != "gpu" || len(slice.Spec.Devices) != 8 || slice.Spec.Pool.Name != node {
						t.Errorf("node %s: %d devices in pool %s", node, len(slice.Spec.Devices), slice.Spec.Pool.Name)
					}
					owner := slice.OwnerReferences[0]
					if owner.Kind != "Node" || owner.UID != s.nodes[node].UID || !*owner.Controller || slice.Labels["stormglass.example/run"] != "r1" {
						t.Errorf("owner %+v, labels %v", owner, slice.Labels)
					}
				}
			})
			f.Fail(1)
			must(t, f.Recover())
			eventually(t, "they are back", func() bool { return f.Live().Ready == 2 })
			s.await("one slice is published after a failure and a recovery", func() bool { return len(published) == 1 })
		})
	}
}

func TestRequestsOfAClaim(t *testing.T) {
	const ( // of a pod without events
		lean  = "1 create serviceaccounts/token, 1 get resourceclaims, 2 patch pods/status"
		whole = "3 create events, 1 create serviceaccounts/token, 3 get pods, 2 get resourceclaims, 3 patch pods/status"
	)
	for fidelity, want := range map[string]string{Kubelet: whole, Lean: lean} {
		s := newStub(t)
		s.withDevices(map[string]*resourcev1.ResourceSlice{}, claimed(scenario.DeviceDriver))
		f := s.fleet(1, func(c *Config) { c.Spec.Fidelity, c.Spec.Events, c.Spec.Devices = fidelity, false, 1 })
		must(t, f.Start(t.Context()))
		// A starting kubelet does not wait for the responses to some requests.
		s.await("the driver watches its slices", func() bool { return len(s.open("resourceslices")) == 1 })
		if fidelity == Kubelet {
			s.awaitRequests("registration", 0, "1 create csinodes, 6 create events, 1 create leases, 1 create nodes, 1 create resourceslices, "+
				"1 deletecollection resourceslices, 2 get csinodes, 2 get leases, 7 get nodes, 6 patch events, 2 patch nodes/status")
		} else {
			s.awaitRequests("registration", 0, "1 create csinodes, 1 create leases, 1 create nodes, 1 create resourceslices, 1 delete leases, 1 get csinodes, 1 get leases, 2 get nodes, 1 patch nodes/status")
		}
		before := 0
		s.locked(func() { before = len(s.requests) })
		s.bind("sg-0", "web", func(p *corev1.Pod) {
			withToken(p)
			withClaim(p)
		})
		s.awaitRequests(fidelity, before, want)
		eventually(t, "it runs", func() bool { return f.Live().PodsRunning == 1 })
	}
}

// TestPodAwaitsItsClaim: a pod that may not use its claim waits, reports the reason, and starts after a later read of
// the claim.
func TestPodAwaitsItsClaim(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*resourcev1.ResourceClaim)
		says  string
	}{
		{"not allocated", func(c *resourcev1.ResourceClaim) { c.Status.Allocation = nil }, "ResourceClaim web-devices: not allocated"},
		{"reserved for another", func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor[0].UID = "uid-other" }, "pod web (uid-web) is not allowed to use ResourceClaim web-devices"},
		{"of another pod", func(c *resourcev1.ResourceClaim) { c.OwnerReferences[0].UID = "uid-other" }, "was not created for Pod ns/web"},
		{"of another driver", func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Driver = "gpu.example.com" }, "DRA driver gpu.example.com is not registered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStub(t)
			claim := claimed(scenario.DeviceDriver)
			c.spoil(claim)
			s.withDevices(map[string]*resourcev1.ResourceSlice{}, claim)
			clock := newFakeClock(time.Now())
			f := s.fleet(1, func(c *Config) {
				c.clock, c.Spec.Devices = clock, 1
				c.Spec.LeaseRenew, c.Spec.StatusReport = scenario.Duration(24*time.Hour), scenario.Duration(24*time.Hour)
			})
			must(t, f.Start(t.Context()))
			s.bind("sg-0", "web", withClaim)
			s.await("an Event tells why it does not start", func() bool {
				return len(s.events) == 1 && s.events[0].Type == corev1.EventTypeWarning && s.events[0].Reason == "FailedPrepareDynamicResources" &&
					strings.Contains(s.events[0].Message, c.says)
			})
			s.locked(func() {
				if p := s.pods["web"]; p.Status.Phase != corev1.PodPending {
					t.Errorf("phase %s", p.Status.Phase)
				}
				*claim = *claimed(scenario.DeviceDriver)
			})
			eventually(t, "it is Ready", func() (ready bool) {
				clock.Step(time.Second)
				s.locked(func() { ready = isReady(s.pods["web"]) })
				return ready
			})
			s.locked(func() {
				if n := len(s.seen("GET", "/resourceclaims/web-devices")); n != 2 {
					t.Errorf("the claim was read %d times", n)
				}
			})
		})
	}
}
