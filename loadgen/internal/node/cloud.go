package node

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/controlplane/control"
)

// cloudWithin is the time limit for a request that launches or terminates instances.
const cloudWithin = 10 * time.Second

func (k *kubelet) instance() control.Instance { return k.plan.instance(k.index, k.hostIP) }

func (p *plan) instance(i int, at netip.Addr) control.Instance {
	of := p.poolOf(i)
	return control.Instance{Name: p.nodeName(i), Zone: p.zone(i), Type: cmp.Or(of.Labels[corev1.LabelInstanceTypeStable], of.Name), Address: at.String()}
}

// launch launches the cloud instances of nodes first to last-1. Without a cloud it does nothing.
func (c *chooser) launch(first, last int) error {
	var change control.Instances
	for i := first; i < last; i++ {
		change.Launch = append(change.Launch, c.plan.instance(i, c.address(i)))
	}
	return c.changeInstances(change)
}

func (c *chooser) changeInstances(change control.Instances) error {
	if c.plan.Cloud == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cloudWithin)
	defer cancel()
	return c.plan.Cloud.ChangeInstances(ctx, change)
}

// join registers the nodes that Start left out (Spec.Later). It returns before they are Ready.
func (f *Fleet) join() {
	later := slices.DeleteFunc(slices.Clone(f.kubelets), func(k *kubelet) bool { return !k.is(absent) })
	for _, k := range later {
		k.mu.Lock()
		k.state = joining
		k.mu.Unlock()
	}
	registered := make(chan struct{}, len(later))
	pace := f.register(later, f.plan.early(), func(k *kubelet, err error) {
		if err != nil && f.ctx.Err() == nil {
			f.plan.Log("node %s did not register: %v", k.name, err)
		}
		registered <- struct{}{}
	})
	f.workers.run(func() {
		defer pace.cancel()
		for range later {
			select {
			case <-registered:
			case <-f.ctx.Done():
				return
			}
		}
		f.relist()
	})
}
