// Package readiness checks whether a component is ready, and waits until it is. A component is ready if its responses
// show that it does its work in the plane. adminclient verifies that the component sent the responses.
package readiness

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/adminclient"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// PollInterval is the interval between two checks. Within is the maximum time to wait until a started process is ready.
// A process needs 1 to 4 s on two cores, and ten times as long on a busy machine.
const (
	PollInterval = 25 * time.Millisecond
	Within       = 90 * time.Second
	checkWithin  = 2 * time.Second // time limit of one check
)

// Check returns nil if a process is ready. `begun` is the time at which the plane, or a restore, started the first
// process of this kind. It is the zero time if only this process was restarted.
func Check(ctx context.Context, client *adminclient.Client, proc topology.Process, begun time.Time) error {
	switch proc.Kind {
	case control.KindEtcd: // a linearizable read, which needs a leader
		if begun.IsZero() { // ignore a full database: it has space again after the fault that filled it
			return client.Get(ctx, proc, "/health?exclude=NOSPACE")
		}
		return client.Get(ctx, proc, "/health")
	case control.KindAPIServer:
		if err := client.Get(ctx, proc, "/readyz"); err != nil {
			return err
		}
		return client.Get(ctx, proc, "/api/v1/namespaces/"+metav1.NamespaceDefault) // API servers create this namespace
	case control.KindMetricsServer:
		// metrics-server's own /readyz waits for the first samples of a node, but the plane may have no node.
		if err := client.Get(ctx, proc, "/healthz"); err != nil || !begun.IsZero() {
			return err
		}
		return client.Served(ctx, topology.MetricsAPI)
	}
	if !begun.IsZero() && control.KindOf(proc.Kind).Leads { // a component of this kind must have become the leader
		if err := client.LeaseTaken(ctx, proc.Kind, begun); err != nil {
			return err
		}
	}
	return client.Get(ctx, proc, "/healthz")
}

// Await calls check repeatedly until it succeeds. If `ended` returns an error or `exited` is closed, Await stops and
// returns the result of `ended`. If ctx ends, Await returns the last error of check.
func Await(ctx context.Context, check func(context.Context) error, exited <-chan struct{}, ended func() error) error {
	tick := time.NewTicker(PollInterval)
	defer tick.Stop()
	for {
		within, cancel := context.WithTimeout(ctx, checkWithin)
		err := check(within)
		cancel()
		if err == nil {
			return nil
		}
		if ended := ended(); ended != nil {
			return ended
		}
		select {
		case <-exited:
			return ended()
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
