package control

import (
	"context"
	"net/http"
)

// ProviderName is the name of the simulated cloud. The providerID of a Node is ProviderName://INSTANCE.
const ProviderName = "stormglass"

// Instance is a machine of the simulated cloud.
type Instance struct {
	// Name is the instance's unique name.
	Name string `json:"name"`
	// Zone is the instance's zone, and Type its machine type. The Node gets no label for an empty field.
	Zone string `json:"zone,omitempty"`
	Type string `json:"type,omitempty"`
	// Address is the internal IP address of the instance.
	Address string `json:"address"`
}

// ProviderID returns the providerID of the instance's Node.
func (i Instance) ProviderID() string { return ProviderName + "://" + i.Name }

// Instances is a change to the simulated cloud's instances. Launching an existing instance replaces its data.
// Terminating a missing instance has no effect.
type Instances struct {
	Launch    []Instance `json:"launch,omitempty"`
	Terminate []string   `json:"terminate,omitempty"` // names of the instances to terminate
}

// ChangeInstances launches and terminates instances in the plane's simulated cloud.
func (c *Client) ChangeInstances(ctx context.Context, change Instances) error {
	return c.call(ctx, http.MethodPost, "/v1/cloud/instances", change, nil)
}
