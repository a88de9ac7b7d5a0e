package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/adminclient"
	"github.com/stormglass/stormglass/controlplane/internal/balancer"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/fault/network"
	"github.com/stormglass/stormglass/controlplane/internal/leadership"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/supervisor"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// connections holds the connections that belong to one attempt to start a plane: the plane's own client, the load
// balancer, and the proxies between components.
type connections struct {
	plan     topology.Plan
	client   *adminclient.Client
	roles    *leadership.Roles
	balancer *balancer.Balancer // the load balancer; nil if there is only one API server
	proxies  []io.Closer
	links    []fault.Link
	// reserved holds sockets that keep the components' ports reserved. While a killed component restarts, no other
	// program can take its port.
	reserved []*os.File
}

// connect opens all connections of a plan. On an error, it closes the connections that it has opened.
func connect(plan topology.Plan, layout topology.Layout, ports topology.Ports) (c connections, err error) {
	defer func() {
		if err != nil {
			c.close()
			c = connections{}
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: %w", err, supervisor.ErrPortTaken)
		}
	}()
	if c.client, err = adminclient.New(layout.PKI(), plan.Server); err != nil {
		return c, err
	}
	c.plan, c.roles = plan, leadership.NewRoles(c.client, len(plan.Of(control.KindEtcd)))
	for _, name := range plan.Listeners() {
		// Ignore an error: if the port is taken, the component itself reports that.
		if file, err := process.Reserve(ports[name]); err == nil && file != nil {
			c.reserved = append(c.reserved, file)
		}
	}
	for _, proxy := range plan.Proxies {
		if err := c.open(proxy); err != nil {
			return c, err
		}
	}
	if len(plan.Backends) > 0 {
		var backends []balancer.Backend
		for _, b := range plan.Backends {
			backends = append(backends, balancer.Backend{Name: b.Name, Address: hostPort(b.URL), Ready: b.URL + "/readyz"})
		}
		c.balancer, err = balancer.Listen(hostPort(plan.Server), backends, c.client.HTTP(), balancer.Options{})
	}
	return c, err
}

func hostPort(url string) string { return strings.TrimPrefix(url, "https://") }

func (c *connections) open(proxy topology.Proxy) error {
	if !proxy.Forward {
		to := proxy.Targets[0]
		l, err := network.Listen(proxy.From, to.To, proxy.Listen, to.Upstream)
		if err != nil {
			return err
		}
		c.proxies = append(c.proxies, l)
		c.links = append(c.links, l.Link())
		return nil
	}
	p, err := network.ListenProxy(proxy.From, proxy.Listen, proxy.Targets)
	if err != nil {
		return err
	}
	c.proxies = append(c.proxies, p)
	for _, l := range p.Links() {
		c.links = append(c.links, l)
	}
	return nil
}

// close closes the load balancer, the proxies, the reserved sockets and the client's idle connections. A call of Status
// that is in progress can still use the client.
func (c *connections) close() {
	if c.balancer != nil {
		c.balancer.Close()
	}
	for _, p := range c.proxies {
		_ = p.Close() // fails only if the listener is already closed
	}
	for _, file := range c.reserved {
		file.Close()
	}
	if c.client != nil {
		c.client.Close()
	}
}

// inService reports whether a component receives connections. It is false only for an API server to which the load
// balancer sends no connections.
func (c *connections) inService(name string) bool {
	return c.balancer == nil || !slices.ContainsFunc(c.balancer.States(), func(s balancer.State) bool { return s.Name == name && !s.Ready })
}

func (p *Plane) connected() connections {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connections
}

func (p *Plane) disconnect() {
	p.mu.Lock()
	c := p.connections
	p.connections = connections{plan: c.plan, client: c.client, roles: c.roles}
	p.mu.Unlock()
	c.close()
}
