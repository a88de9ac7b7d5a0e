// Package mirror shows a plane's components as kubeadm's static pods: it registers control-plane nodes and maintains a
// mirror pod for each component on them, as kubelets would.
//
// Each node costs the API server 9 requests a minute: 6 renewals of its Lease, and 3 lists of its pods from the watch
// cache (instead of a watch). A node also reports its status every 5 minutes and when its version changes. Whenever a
// component's process starts, serves, ends or is paused, a report of the pod's status costs one request. The node
// retries a failed request after 10 s. The plane does not wait for these requests.
package mirror

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/supervisor"
	"github.com/stormglass/stormglass/internal/kubeletapi"
)

// Config describes the plane whose components Start represents as mirror pods. Every field must be set.
type Config struct {
	// Admin is the administrator's client configuration. It registers the nodes, because kubelets may not label
	// themselves as control-plane nodes.
	Admin *rest.Config
	Keys  pki.Dir
	// MetricsServerVersion is the tag of the image of metrics-server.
	MetricsServerVersion string
	// Components returns the current state of all components.
	Components func() []supervisor.Snapshot
	// Events waits for events of the plane with sequence numbers greater than `after`. An error or an empty list means
	// that no more events follow.
	Events func(ctx context.Context, after int64) ([]control.Event, error)
}

// Nodes are the control-plane nodes of one plane. The caller must stop them.
type Nodes struct {
	api     *kubeletapi.Server
	stop    context.CancelFunc
	running sync.WaitGroup
}

// Start serves the kubelet API of the nodes, registers the nodes in the background, and maintains them until Stop. The
// number of nodes is the largest number of replicas of any component.
func Start(cfg Config) (*Nodes, error) {
	count := 0
	for _, c := range cfg.Components() {
		count = max(count, index(c.Name)+1)
	}
	admin, err := kubernetes.NewForConfig(cfg.Admin)
	if err != nil {
		return nil, err
	}
	var all []*node
	for i := range count {
		n, err := newNode(cfg, i, admin)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", nodeName(i), err)
		}
		all = append(all, n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	nodes := &Nodes{stop: cancel}
	if nodes.api, err = nodes.serve(cfg, all); err != nil {
		nodes.Stop()
		return nil, fmt.Errorf("kubelet API: %w", err)
	}
	for _, n := range all {
		nodes.running.Go(func() { n.run(ctx) })
	}
	nodes.running.Go(func() { follow(ctx, cfg, all) })
	return nodes, nil
}

// Stop stops the requests of the nodes and returns when no request is in progress. The Node and Pod objects stay in the
// API, as if the machine were switched off.
func (n *Nodes) Stop() {
	n.stop()
	if n.api != nil {
		n.api.Close()
	}
	n.running.Wait()
}

// follow makes each node check its components after each event of the plane.
func follow(ctx context.Context, cfg Config, nodes []*node) {
	for after := int64(0); ; {
		events, err := cfg.Events(ctx, after)
		if err != nil || len(events) == 0 {
			return
		}
		after = events[len(events)-1].Seq
		for _, n := range nodes {
			select {
			case n.changed <- struct{}{}:
			default: // a check is already due
			}
		}
	}
}

// components returns the components of one node. The number of the node is the replica number of its components.
func (cfg *Config) components(node int) []supervisor.Snapshot {
	return slices.DeleteFunc(cfg.Components(), func(c supervisor.Snapshot) bool { return index(c.Name) != node })
}
