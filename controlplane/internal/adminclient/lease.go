package adminclient

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LeaseTaken returns nil if a component of the given kind has acquired the kind's lease since the given time.
func (c *Client) LeaseTaken(ctx context.Context, kind string, since time.Time) error {
	lease, err := c.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, kind, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !leaseTaken(lease, kind, since) {
		return fmt.Errorf("the lease %s has no holder", lease.Name)
	}
	return nil
}

// leaseTaken reports whether a component of the kind has acquired the lease since the given time or, with coordinated
// leader election, has renewed the lease since then.
//
// A component that acquires a lease itself writes acquireTime. Under the feature gate CoordinatedLeaderElection, an API
// server instead writes strategy, the holder and a first renewTime, but no acquireTime. In this case, a renewTime that
// a component of the kind wrote shows that the holder knows that it has the lease.
func leaseTaken(lease *coordinationv1.Lease, kind string, since time.Time) bool {
	spec := lease.Spec
	written := func(at *metav1.MicroTime) bool { return at != nil && !at.Before(&metav1.MicroTime{Time: since}) }
	switch {
	case spec.HolderIdentity == nil || *spec.HolderIdentity == "":
		return false
	case spec.Strategy == nil:
		return written(spec.AcquireTime)
	}
	return written(spec.RenewTime) && slices.ContainsFunc(lease.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == kind && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.String(), `"f:renewTime"`)
	})
}
