package node

import (
	"context"
	"slices"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// cloudWithin bounds a change of instances.
const cloudWithin = 10 * time.Second

// instance is the machine of the simulated cloud that the node is.
func (k *kubelet) instance() control.Instance {
	return control.Instance{Name: k.name, Zone: k.plan.zone(k.index), Type: k.plan.shapeOf(k.index).name, Address: k.hostIP.String()}
}

// launch has the cloud launch the nodes' instances, if there is a cloud.
func (f *Fleet) launch(kubelets []*kubelet) error {
	var change control.Instances
	for _, k := range kubelets {
		change.Launch = append(change.Launch, k.instance())
	}
	return f.changeInstances(change)
}

func (f *Fleet) changeInstances(change control.Instances) error {
	if f.plan.Cloud == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(f.ctx, cloudWithin)
	defer cancel()
	return f.plan.Cloud.ChangeInstances(ctx, change)
}

// Vanish is Fail of nodes whose instances the cloud no longer has.
func (f *Fleet) Vanish(fraction float64) ([]string, error) {
	names := f.Fail(fraction)
	return names, f.changeInstances(control.Instances{Terminate: names})
}

// Join registers the nodes that Start left for later, Spec.RegisterRate per second. It does not wait; nodes that
// cannot register are logged.
func (f *Fleet) Join() (names []string, err error) {
	later := slices.DeleteFunc(slices.Clone(f.kubelets), func(k *kubelet) bool { return !k.is(absent) })
	if err := f.launch(later); err != nil {
		return nil, err
	}
	for _, k := range later {
		names = append(names, k.name)
		k.mu.Lock()
		k.state = joining
		k.mu.Unlock()
	}
	registered := make(chan struct{}, len(later))
	pace := f.register(later, func(k *kubelet, err error) {
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
	return names, nil
}
