package control

import (
	"context"
	"net/http"
)

// ProviderName is the name of the simulated cloud: a Node's providerID is ProviderName://NAME, of its instance.
const ProviderName = "stormglass"

// Instance is a machine of the simulated cloud.
type Instance struct {
	// Name is unique.
	Name string `json:"name"`
	// Zone that it is in, Type of machine; empty: its Node gets no such label.
	Zone string `json:"zone,omitempty"`
	Type string `json:"type,omitempty"`
	// Address is its internal one.
	Address string `json:"address"`
}

// ProviderID is that of the instance's Node.
func (i Instance) ProviderID() string { return ProviderName + "://" + i.Name }

// Instances is a change of what the simulated cloud has. One that is launched again stays; one that is terminated
// may be gone already.
type Instances struct {
	Launch    []Instance `json:"launch,omitempty"`
	Terminate []string   `json:"terminate,omitempty"` // by name
}

// ChangeInstances launches and terminates instances of the plane's simulated cloud.
func (c *Client) ChangeInstances(ctx context.Context, change Instances) error {
	return c.call(ctx, http.MethodPost, "/v1/cloud/instances", change, nil)
}
