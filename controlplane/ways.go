package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/stormglass/stormglass/controlplane/internal/balancer"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/fault/network"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// ways are what leads from one component to another through the supervisor.
type ways struct {
	balancer *balancer.Balancer // nil: there is one API server
	proxies  []io.Closer
	links    []fault.Link
	// reserved are the components' ports: what listens on them may be killed, and
	// finds its port free when it is started again.
	reserved []*os.File
}

// openWays opens them, all or none.
func openWays(plan topology.Plan, probe *prober, ports topology.Ports) (w ways, err error) {
	defer func() {
		if err != nil {
			w.close()
			w = ways{}
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: %w", err, errPortTaken)
		}
	}()
	for _, name := range plan.Listeners() {
		// Without a reservation, the component says itself that its port is taken.
		if file, err := process.Reserve(ports[name]); err == nil && file != nil {
			w.reserved = append(w.reserved, file)
		}
	}
	for _, proxy := range plan.Proxies {
		if err := w.open(proxy); err != nil {
			return w, err
		}
	}
	if len(plan.Backends) > 0 {
		var backends []balancer.Backend
		for _, b := range plan.Backends {
			backends = append(backends, balancer.Backend{Name: b.Name, Address: hostPort(b.URL), Ready: b.URL + "/readyz"})
		}
		w.balancer, err = balancer.Listen(hostPort(plan.Server), backends, probe.kubeHTTP, balancer.Options{})
	}
	return w, err
}

func hostPort(url string) string { return strings.TrimPrefix(url, "https://") }

func (w *ways) open(proxy topology.Proxy) error {
	if !proxy.Forward {
		r := proxy.Routes[0]
		l, err := network.Listen(r.From, r.To, proxy.Listen, r.Target)
		if err != nil {
			return err
		}
		w.proxies = append(w.proxies, l)
		w.links = append(w.links, l.Link())
		return nil
	}
	var targets []network.Target
	for _, r := range proxy.Routes {
		targets = append(targets, network.Target{To: r.To, Host: r.Host, Upstream: r.Target})
	}
	p, err := network.ListenProxy(proxy.Routes[0].From, proxy.Listen, targets)
	if err != nil {
		return err
	}
	w.proxies = append(w.proxies, p)
	for _, l := range p.Links() {
		w.links = append(w.links, l)
	}
	return nil
}

func (w *ways) close() {
	if w.balancer != nil {
		w.balancer.Close()
	}
	for _, p := range w.proxies {
		_ = p.Close() // a listener that is closed already
	}
	for _, file := range w.reserved {
		file.Close()
	}
}

// openWays opens what a plan needs beside its processes.
func (p *Plane) openWays(plan topology.Plan, probe *prober, ports topology.Ports) error {
	w, err := openWays(plan, probe, ports)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.probe, p.ways = plan, probe, w
	return nil
}

// closeWays closes it again.
func (p *Plane) closeWays() {
	p.mu.Lock()
	w, probe := p.ways, p.probe
	p.ways = ways{}
	p.mu.Unlock()
	w.close()
	if probe != nil {
		probe.close()
	}
}
