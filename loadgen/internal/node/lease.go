package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

const (
	leases       = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	leaseVersion = "coordination.k8s.io/v1"
)

// leaseKeeper creates and renews one node's Lease. It is safe for concurrent use, because a cancelled renewal may still
// run during the next renewal.
type leaseKeeper struct {
	node    string
	owner   metav1.OwnerReference
	life    *life
	link    *link
	seconds int32
	keep    bool // whether to take over an existing Lease, as a real kubelet does

	mu   sync.Mutex
	last []byte // the Lease as last seen, encoded
}

// create creates the Lease. If the Lease exists already, create takes over the Lease if k.keep is true, and otherwise
// replaces it.
func (k *leaseKeeper) create(ctx context.Context) error {
	if k.keep {
		answer, err := k.link.do(ctx, call{verb: "get", resource: "leases", path: leases + "/" + k.node, urgent: true})
		if !apierrors.IsNotFound(err) {
			return k.remember(answer, err)
		}
		return k.post(ctx)
	}
	_, err := k.link.do(ctx, call{verb: "delete", resource: "leases", path: leases + "/" + k.node, urgent: true})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return k.post(ctx)
}

func (k *leaseKeeper) post(ctx context.Context) error {
	now := metav1.NewMicroTime(k.life.clock.Now())
	body, err := encode(leaseVersion, "Lease", &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: k.node, Namespace: "kube-node-lease", OwnerReferences: []metav1.OwnerReference{k.owner}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &k.node, LeaseDurationSeconds: &k.seconds, RenewTime: &now},
	})
	if err != nil {
		return err
	}
	answer, err := k.link.do(ctx, call{verb: "create", resource: "leases", path: leases, body: body, urgent: true})
	return k.remember(answer, err)
}

// renew updates the Lease, based on the version last seen. If another client has changed the Lease, it reads the Lease
// again first. If the Lease is gone, it creates a new one. It calls done with the result, normally on the goroutine
// that reads the connection.
func (k *leaseKeeper) renew(ctx context.Context, done func(error)) {
	c, err := k.put()
	if err != nil {
		done(err)
		return
	}
	k.link.start(ctx, c, func(answer []byte, err error) {
		switch err = k.remember(answer, err); {
		case apierrors.IsNotFound(err):
			k.life.spawn(func() { done(k.post(ctx)) })
		case apierrors.IsConflict(err):
			k.life.spawn(func() { done(k.renewAfresh(ctx)) })
		default:
			done(err)
		}
	})
}

func (k *leaseKeeper) renewAfresh(ctx context.Context) error {
	answer, err := k.link.do(ctx, call{verb: "get", resource: "leases", path: leases + "/" + k.node, urgent: true})
	if err := k.remember(answer, err); err != nil {
		return err
	}
	c, err := k.put()
	if err != nil {
		return err
	}
	answer, err = k.link.do(ctx, c)
	return k.remember(answer, err)
}

func (k *leaseKeeper) put() (call, error) {
	k.mu.Lock()
	last := k.last
	k.mu.Unlock()
	lease, err := renewedLease(last, k.seconds, k.life.clock.Now())
	if err != nil {
		return call{}, fmt.Errorf("renew the lease of node %s: %w", k.node, err)
	}
	body := wrap(leaseVersion, "Lease", lease)
	return call{verb: "update", resource: "leases", path: leases + "/" + k.node, body: body, urgent: true}, nil
}

func (k *leaseKeeper) remember(answer []byte, err error) error {
	if err != nil {
		return err
	}
	raw, err := protobuf.Unwrap(answer)
	if err != nil {
		return fmt.Errorf("read the lease of node %s: %w", k.node, err)
	}
	k.mu.Lock()
	k.last = raw
	k.mu.Unlock()
	return nil
}

// renewedLease returns a copy of an encoded Lease with a new renewTime and leaseDurationSeconds. The field numbers come
// from k8s.io/api/coordination/v1/generated.proto.
func renewedLease(lease []byte, seconds int32, now time.Time) ([]byte, error) {
	const metadata, spec = 1, 2
	const duration, renewTime = 2, 4 // field numbers in the spec
	at := metav1.NewMicroTime(now)
	stamp, err := at.Marshal()
	if err != nil {
		return nil, err
	}
	var kept []byte // the other fields of spec
	out := make([]byte, 0, len(lease)+32)
	err = protobuf.Fields(lease, func(n protowire.Number, v []byte, x uint64) error {
		if n != spec {
			out = appendField(out, n, v, x)
			return nil
		}
		return protobuf.Fields(v, func(n protowire.Number, v []byte, x uint64) error {
			if n != duration && n != renewTime {
				kept = appendField(kept, n, v, x)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	kept = protowire.AppendTag(kept, duration, protowire.VarintType)
	kept = protowire.AppendVarint(kept, uint64(seconds))
	kept = appendField(kept, renewTime, stamp, 0)
	return appendField(out, spec, kept, 0), nil
}
