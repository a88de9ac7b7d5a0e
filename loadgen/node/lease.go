package node

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/wire"
)

const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

// leaseKeeper writes one node's Lease. It is used by one goroutine at a time
// but for a renewal that was given up and has not noticed yet.
type leaseKeeper struct {
	node  string
	owner metav1.OwnerReference
	life  *life
	link  *link
	// seconds is leaseDurationSeconds: four renew intervals, as a kubelet's.
	seconds int32

	mu   sync.Mutex
	last *coordinationv1.Lease // as last seen
}

// create makes the Lease as a starting kubelet does, after deleting one that
// an earlier kubelet may have left.
func (k *leaseKeeper) create(ctx context.Context) error {
	if err := k.delete(ctx); err != nil {
		return err
	}
	return k.write(ctx, call{verb: "create", method: http.MethodPost, path: leases}, nil)
}

func (k *leaseKeeper) delete(ctx context.Context) error {
	_, err := k.link.do(ctx, call{verb: "delete", resource: "leases", method: http.MethodDelete, path: leases + "/" + k.node, urgent: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// renew updates the Lease as last seen, and looks again only when somebody
// else changed or removed it.
func (k *leaseKeeper) renew(ctx context.Context) error {
	k.mu.Lock()
	last := k.last
	k.mu.Unlock()
	err := k.write(ctx, call{verb: "update", method: http.MethodPut, path: leases + "/" + k.node}, last)
	switch {
	case apierrors.IsNotFound(err):
		return k.write(ctx, call{verb: "create", method: http.MethodPost, path: leases}, nil)
	case apierrors.IsConflict(err):
		body, err := k.link.do(ctx, call{verb: "get", resource: "leases", method: http.MethodGet, path: leases + "/" + k.node, urgent: true})
		if err != nil {
			return err
		}
		if err := k.seen(body); err != nil {
			return err
		}
		k.mu.Lock()
		last = k.last
		k.mu.Unlock()
		return k.write(ctx, call{verb: "update", method: http.MethodPut, path: leases + "/" + k.node}, last)
	}
	return err
}

func (k *leaseKeeper) write(ctx context.Context, c call, base *coordinationv1.Lease) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: k.node, Namespace: "kube-node-lease", OwnerReferences: []metav1.OwnerReference{k.owner}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &k.node},
	}
	if base != nil {
		copied := *base // the fields set below are replaced, not written through
		lease = &copied
	}
	now := metav1.NewMicroTime(k.life.clock.Now())
	lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &k.seconds, &now
	var err error
	if c.body, err = encode("coordination.k8s.io/v1", "Lease", lease); err != nil {
		return err
	}
	c.resource, c.contentType, c.urgent = "leases", wire.ContentType, true
	body, err := k.link.do(ctx, c)
	if err != nil {
		return err
	}
	return k.seen(body)
}

func (k *leaseKeeper) seen(body []byte) error {
	var lease coordinationv1.Lease
	if err := decode(body, &lease); err != nil {
		return fmt.Errorf("read the lease of node %s: %w", k.node, err)
	}
	k.mu.Lock()
	k.last = &lease
	k.mu.Unlock()
	return nil
}
