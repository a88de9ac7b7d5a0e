package controlplane_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/controlplane/control"
)

// haPlane is the plane of TestHighlyAvailable.
type haPlane struct {
	t       *testing.T
	dir     string
	cluster control.Cluster
	client  *control.Client
	kube    *kubernetes.Clientset
	written int
}

// reload reads the current description of the plane.
func (p *haPlane) reload() {
	p.t.Helper()
	var err error
	if p.cluster, err = control.Load(p.dir); err == nil {
		p.client, err = control.Dial(p.dir)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.kube = client(p.t, p.cluster, "admin")
}

func (p *haPlane) status(t *testing.T) map[string]control.ComponentStatus {
	t.Helper()
	s, err := p.client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]control.ComponentStatus{}
	for _, c := range s.Components {
		all[c.Name] = c
	}
	return all
}

// count returns the number of components of a kind with each role.
func (p *haPlane) count(t *testing.T, kind string) map[string]int {
	t.Helper()
	roles := map[string]int{}
	for _, c := range p.status(t) {
		if c.Kind == kind {
			roles[c.Role]++
		}
	}
	return roles
}

// write creates an object. The API server must acknowledge it within the given time, even during a fault.
func (p *haPlane) write(t *testing.T, within time.Duration) string {
	t.Helper()
	p.written++
	name := "written-" + strconv.Itoa(p.written)
	var err error
	eventually(t, within, "a write is acknowledged", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = p.kube.CoreV1().ConfigMaps("default").Create(ctx, kubeConfigMap(name), metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	return name
}

// begin begins a fault, and clears it at the end of the test.
func (p *haPlane) begin(t *testing.T, f control.Fault) control.FaultStatus {
	t.Helper()
	status, err := p.client.Begin(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.clear(t, status.ID) })
	return status
}

func (p *haPlane) clear(t *testing.T, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := p.client.Clear(ctx, id); err != nil {
		t.Error(err)
	}
}

// event waits for an event that has a number greater than `after` and for which `is` returns true.
func (p *haPlane) event(t *testing.T, after int64, within time.Duration, what string, is func(control.Event) bool) control.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		events, err := p.client.Events(ctx, after)
		if err != nil {
			t.Fatalf("no event within %v for %q: %v", within, what, err)
		}
		for _, e := range events {
			after = e.Seq
			if is(e) {
				return e
			}
		}
	}
}

// elected waits until etcd elects another leader than the target of the fault. On a busy machine the members may
// hold elections before the fault.
func (p *haPlane) elected(t *testing.T, after int64, fault control.FaultStatus) {
	t.Helper()
	lost := fault.On[0]
	p.event(t, after, 30*time.Second, "another leader than "+lost, func(e control.Event) bool {
		if e.Kind != control.EventEtcdLeader || e.Time.Before(fault.Asked) {
			return false
		}
		if e.Component == lost && e.Time.After(fault.Active) {
			t.Errorf("%s was elected at %v, but the fault has been active on it since %v", lost, e.Time, fault.Active)
		}
		return e.Component != lost
	})
}

// last returns the number of the last event.
func (p *haPlane) last(t *testing.T) int64 {
	t.Helper()
	events, err := p.client.Events(t.Context(), 0)
	if err != nil || len(events) == 0 {
		t.Fatalf("events = %v %v, want at least one", events, err)
	}
	return events[len(events)-1].Seq
}

func (p *haPlane) back(t *testing.T, name string) {
	t.Helper()
	eventually(t, time.Minute, name+" is back", func() bool { return p.status(t)[name].Ready })
}
