package controlplane

import (
	"context"

	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/readiness"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// launchMetricsServer installs and starts metrics-server, and returns when API servers serve its API. If the plane has
// no metrics-server, it removes the objects of an earlier start. An APIService without a server breaks discovery, and
// therefore the deletion of namespaces.
func (p *Plane) launchMetricsServer(ctx context.Context, processes []topology.Process) error {
	c := p.connected()
	client, plan := c.client, c.plan
	if len(processes) == 0 {
		if !p.dir.resumed {
			return nil
		}
		return client.DeleteSelected(ctx, topology.APIServices, topology.ManagedBy)
	}
	for _, o := range topology.MetricsServerRights() {
		if err := client.Apply(ctx, o.Path, o.Manifest); err != nil {
			return err
		}
	}
	if err := p.components.Launch(ctx, processes); err != nil {
		return err
	}
	authority, err := p.layout.PKI().Authority(pki.ServerCA)
	if err != nil {
		return err
	}
	// Register the API only after metrics-server is ready, because an API server that cannot reach metrics-server waits
	// longer before each further attempt.
	for _, o := range topology.MetricsServerAPI(plan.MetricsServerPort, authority) {
		if err := client.Apply(ctx, o.Path, o.Manifest); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readiness.Within)
	defer cancel()
	served := func(ctx context.Context) error { return client.Served(ctx, topology.MetricsAPI) }
	return readiness.Await(ctx, served, nil, p.components.FirstExit)
}
