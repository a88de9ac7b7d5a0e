package controlplane

import (
	"context"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// A supervisor that is killed undoes no fault. The next start takes out of the
// plane's data what would keep it from serving as before.

// disarm takes back etcd's alarm about space, with which no leader gets its
// lease. If there is no room the next write raises it again.
func (p *Plane) disarm(ctx context.Context, probe *prober, plan topology.Plan) error {
	first := plan.Of(control.KindEtcd)[0]
	raised, err := fault.Disarm(ctx, func(ctx context.Context, path string, in, out any) error {
		return probe.etcdCall(ctx, first, path, in, out)
	})
	if raised {
		p.progress("%-26s NOSPACE disarmed: it was raised before this start", control.KindEtcd)
	}
	return err
}

// sweep removes webhooks of faults.
func (p *Plane) sweep(ctx context.Context) error {
	if !p.dir.resumed {
		return nil
	}
	removed, err := fault.Sweep(ctx, p.Kubeconfig())
	for _, name := range removed {
		p.progress("%-26s removed: a fault had left it", name)
	}
	return err
}
