package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider/api"

	"github.com/stormglass/stormglass/controlplane/control"
)

// cloudStub keeps the existing instances.
type cloudStub struct {
	mu        sync.Mutex
	instances map[string]control.Instance
	broken    error
}

func (c *cloudStub) ChangeInstances(_ context.Context, change control.Instances) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return c.broken
	}
	if c.instances == nil {
		c.instances = map[string]control.Instance{}
	}
	for _, i := range change.Launch {
		c.instances[i.Name] = i
	}
	for _, name := range change.Terminate {
		delete(c.instances, name)
	}
	return nil
}

// A kubelet with --cloud-provider=external knows neither its address nor its zone, and accepts no pods yet.
func TestNodesOfACloudStartUninitialized(t *testing.T) {
	s, cloud := newStub(t), &cloudStub{}
	f := s.fleet(2, func(c *Config) { c.Cloud = cloud })
	must(t, f.Start(t.Context()))
	s.locked(func() {
		n := s.nodes["sg-1"]
		if n.Spec.ProviderID != "stormglass://sg-1" || n.Labels[corev1.LabelTopologyZone] != "" {
			t.Errorf("providerID %q, labels %v", n.Spec.ProviderID, n.Labels)
		}
		if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != cloudprovider.TaintExternalCloudProvider || n.Spec.Taints[0].Value != "true" || n.Spec.Taints[0].Effect != corev1.TaintEffectNoSchedule {
			t.Errorf("taints %v", n.Spec.Taints)
		}
		if len(n.Status.Addresses) != 1 || n.Status.Addresses[0].Type != corev1.NodeHostName {
			t.Errorf("addresses %v", n.Status.Addresses)
		}
	})
	if i := cloud.instances["sg-1"]; i.Zone != "zone-1" || i.Address != hostIP(1).String() {
		t.Errorf("the cloud has %+v", i)
	}
}

// Instances vanish with their nodes, and are launched again when the nodes return.
func TestInstancesVanish(t *testing.T) {
	s, cloud := newStub(t), &cloudStub{}
	f := s.fleet(4, func(c *Config) { c.Cloud = cloud })
	must(t, f.Start(t.Context()))
	gone, err := f.Vanish(0.5)
	if err != nil || len(gone) != 2 || len(cloud.instances) != 2 {
		t.Fatalf("%v vanished, %v, and the cloud has %v", gone, err, cloud.instances)
	}
	for _, name := range gone {
		if _, there := cloud.instances[name]; there {
			t.Errorf("the cloud still has %s", name)
		}
	}
	s.await("their connections are closed", func() bool { return len(s.conns) == 2 })
	must(t, f.Recover())
	eventually(t, "all are back", func() bool { return f.Live().Ready == 4 })
	if len(cloud.instances) != 4 {
		t.Errorf("the cloud has %v", cloud.instances)
	}
	cloud.broken = errors.New("cloud-api is down")
	if _, err := f.Vanish(0.5); !errors.Is(err, cloud.broken) {
		t.Errorf("Vanish = %v, want the error of the cloud", err)
	}
}

// Nodes left for later do not belong to the run until they join.
func TestNodesJoinLater(t *testing.T) {
	s, cloud := newStub(t), &cloudStub{}
	f := s.fleet(5, func(c *Config) { c.Cloud, c.Spec.Later = cloud, 3 })
	must(t, f.Start(t.Context()))
	if names := f.Names(); !slices.Equal(names, []string{"sg-0", "sg-1"}) || f.Live().Ready != 2 || len(cloud.instances) != 2 {
		t.Fatalf("the fleet has %v at first, the cloud has %v", names, cloud.instances)
	}
	if hit := f.Isolate(1); len(hit) != 2 {
		t.Errorf("a fault of all nodes hits %v", hit)
	}
	must(t, f.Recover())
	joined, err := f.Join()
	if err != nil || !slices.Equal(joined, []string{"sg-2", "sg-3", "sg-4"}) || len(f.Names()) != 5 {
		t.Fatalf("%v join, %v; then %v", joined, err, f.Names())
	}
	eventually(t, "all are Ready", func() bool { return f.Live().Ready == 5 && f.Live().Registered == 5 })
	s.locked(func() {
		if len(s.nodes) != 5 {
			t.Errorf("the API server has %d nodes", len(s.nodes))
		}
	})
	if again, err := f.Join(); err != nil || len(again) > 0 {
		t.Errorf("a second time %v join, %v", again, err)
	}
}
