package controlplane

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// launchCloudControllers applies the RBAC objects of cloud-controller-manager and starts its processes.
func (p *Plane) launchCloudControllers(ctx context.Context, processes []topology.Process) error {
	if len(processes) == 0 {
		return nil
	}
	for _, o := range topology.CloudControllersRights() {
		if err := p.connected().client.Apply(ctx, o.Path, o.Manifest); err != nil {
			return err
		}
	}
	return p.components.Launch(ctx, processes)
}

// maxInstances is the maximum size in bytes of a request to launch or terminate instances. 20,000 instances fit.
const maxInstances = 4 << 20

func (p *Plane) serveInstances(w http.ResponseWriter, r *http.Request) {
	var change control.Instances
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxInstances)).Decode(&change); err != nil {
		reply(w, http.StatusBadRequest, control.FaultRefusal{Error: err.Error()})
		return
	}
	c := p.connected()
	clouds := c.plan.Of(control.KindCloudAPI)
	if len(clouds) == 0 {
		reply(w, http.StatusConflict, control.FaultRefusal{Error: "this control plane has no simulated cloud (the setting cloudControllerManager adds one)"})
		return
	}
	if err := c.client.ChangeInstances(r.Context(), clouds[0], change); err != nil {
		reply(w, http.StatusServiceUnavailable, control.FaultRefusal{Error: err.Error()})
		return
	}
	reply(w, http.StatusOK, struct{}{})
}
