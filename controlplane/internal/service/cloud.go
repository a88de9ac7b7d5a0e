package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// The paths of the cloud's API. The path of an object ends with its name.
const (
	InstancesPath     = "/instances"
	LoadBalancersPath = "/load-balancers"
	RoutesPath        = "/routes"
)

// Region is the only region of the cloud.
const Region = "stormglass"

// LoadBalancer is a load balancer of the cloud. The client chooses its hosts.
type LoadBalancer struct {
	// Hosts lists the names of the instances behind the load balancer.
	Hosts []string `json:"hosts"`
	// Address is the load balancer's address. It is empty until the load balancer is ready.
	Address string `json:"address,omitempty"`
}

// Route is a route of the cloud to the pods of a node.
type Route struct {
	// Instance is the name of the route's target, and CIDR its destination.
	Instance string `json:"instance"`
	CIDR     string `json:"cidr"`
}

// cloudFlags holds the values of the flags that only the service cloud-api has. A quota of zero means unlimited.
type cloudFlags struct {
	state             string
	balancers, routes int
	balancerTime      time.Duration
}

type refusal struct {
	status int
	msg    string
}

func (r *refusal) Error() string { return r.msg }

// balancer is a LoadBalancer as the cloud stores it. It has an address from the beginning, but clients see the address
// only after the time Ready.
type balancer struct {
	LoadBalancer
	Ready time.Time `json:"ready"`
}

func (b balancer) shown(now time.Time) LoadBalancer {
	if now.Before(b.Ready) {
		b.Address = ""
	}
	return b.LoadBalancer
}

type cloud struct {
	flags     cloudFlags
	instances *kept[control.Instance]
	balancers *kept[balancer]
	routes    *kept[Route]
}

// serveCloud serves the API of a cloud: instances, which an administrator launches and terminates, and load balancers
// and routes, which clients create. It records each change in a file, and reads the file when it starts.
func serveCloud(s *server) (func(context.Context) error, error) {
	file, err := openState(s.flags.cloud.state)
	if err != nil {
		return nil, err
	}
	c := &cloud{
		flags:     s.flags.cloud,
		instances: keep[control.Instance](file, "instance"), balancers: keep[balancer](file, "loadBalancer"), routes: keep[Route](file, "route"),
	}
	if err := file.load(); err != nil {
		return nil, err
	}
	s.mux.Handle("POST "+InstancesPath, administrators(http.HandlerFunc(c.change)))
	s.operation("GET "+InstancesPath+"/{name}", "get-instance", func(r *http.Request) (any, error) {
		return c.instances.get(r.PathValue("name"))
	})
	s.operation("GET "+LoadBalancersPath+"/{name}", "get-load-balancer", func(r *http.Request) (any, error) {
		b, err := c.balancers.get(r.PathValue("name"))
		return b.shown(time.Now()), err
	})
	s.operation("PUT "+LoadBalancersPath+"/{name}", "put-load-balancer", c.putBalancer)
	s.operation("DELETE "+LoadBalancersPath+"/{name}", "delete-load-balancer", func(r *http.Request) (any, error) {
		return struct{}{}, c.balancers.delete(r.PathValue("name"))
	})
	s.operation("GET "+RoutesPath, "list-routes", func(*http.Request) (any, error) { return c.routes.list(), nil })
	s.operation("PUT "+RoutesPath+"/{name}", "create-route", func(r *http.Request) (any, error) {
		var route Route
		if err := decode(r, &route); err != nil {
			return nil, err
		}
		return route, c.routes.put(r.PathValue("name"), c.flags.routes, "routes", func(Route) Route { return route })
	})
	s.operation("DELETE "+RoutesPath+"/{name}", "delete-route", func(r *http.Request) (any, error) {
		return struct{}{}, c.routes.delete(r.PathValue("name"))
	})
	return func(ctx context.Context) error {
		<-ctx.Done()
		return file.close()
	}, nil
}

// operation registers an operation of the cloud's API. The operation responds with the result of `answer` as JSON.
func (s *server) operation(pattern, name string, answer func(*http.Request) (any, error)) {
	s.mux.Handle(pattern, identified(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var out any
		var refused *refusal
		err := s.do(r.Context(), name, func() (err error) {
			out, err = answer(r)
			if errors.As(err, &refused) && refused.status == http.StatusNotFound {
				return nil // "not found" is a regular response, not a failure
			}
			return err
		})
		if err == nil && refused != nil {
			err = refused
		}
		if err != nil {
			refuse(w, err)
			return
		}
		writeJSON(w, out)
	})))
}

// maxCloudRequest is the maximum size of a request in bytes, enough for the names of 20,000 hosts.
const maxCloudRequest = 4 << 20

func decode(r *http.Request, into any) error {
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxCloudRequest)).Decode(into); err != nil {
		return &refusal{http.StatusBadRequest, fmt.Sprintf("not a %T: %v", into, err)}
	}
	return nil
}

// change handles a request to launch and terminate instances.
func (c *cloud) change(w http.ResponseWriter, r *http.Request) {
	var asked control.Instances
	err := decode(r, &asked)
	for _, i := range asked.Launch {
		if err == nil {
			err = c.instances.put(i.Name, 0, "", func(control.Instance) control.Instance { return i })
		}
	}
	for _, name := range asked.Terminate {
		if err == nil {
			err = c.instances.delete(name)
		}
	}
	if err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// addressesOf is the range of the load balancers' addresses. The range is reserved for benchmarks (RFC 2544), so no
// server uses these addresses.
const addressesOf = "198.18.0.0/15"

func (c *cloud) putBalancer(r *http.Request) (any, error) {
	var asked LoadBalancer
	if err := decode(r, &asked); err != nil {
		return nil, err
	}
	now := time.Now()
	var made balancer
	err := c.balancers.put(r.PathValue("name"), c.flags.balancers, "load balancers", func(old balancer) balancer {
		made = old
		made.Hosts = asked.Hosts
		if made.Address == "" {
			made.Address, made.Ready = c.freeAddress(), now.Add(c.flags.balancerTime)
		}
		return made
	})
	return made.shown(now), err
}

// freeAddress returns the lowest address that no load balancer uses. The caller holds the lock of balancers.
func (c *cloud) freeAddress() string {
	used := map[string]bool{}
	for _, b := range c.balancers.all {
		used[b.Address] = true
	}
	at := netip.MustParsePrefix(addressesOf).Addr().Next()
	for used[at.String()] {
		at = at.Next()
	}
	return at.String()
}
