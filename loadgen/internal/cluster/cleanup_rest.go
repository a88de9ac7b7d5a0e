package cluster

import (
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ofNodes selects the objects of nodes: each has a node's name and says that the node
// owns it. A kubelet's Lease and CSINode carry no label; the garbage collector
// would delete them too, but later.
func ofNodes(nodes []item) func(metav1.ObjectMeta) bool {
	uids := make(map[string]types.UID, len(nodes))
	for _, n := range nodes {
		uids[n.name] = n.uid
	}
	return func(m metav1.ObjectMeta) bool {
		uid, ours := uids[m.Name]
		return ours && slices.ContainsFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == uid })
	}
}

func (c *cleaner) leases(ctx context.Context, nodes []item) error {
	if len(nodes) == 0 {
		return nil
	}
	leases, ours := c.client.CoordinationV1().Leases(leaseNamespace), ofNodes(nodes)
	var objects []item
	err := pages(c.all(), func(o metav1.ListOptions) (*coordinationv1.LeaseList, error) { return leases.List(ctx, o) },
		func(l *coordinationv1.LeaseList) {
			for _, x := range l.Items {
				if ours(x.ObjectMeta) {
					objects = append(objects, objectOf(x.ObjectMeta))
				}
			}
		})
	if err != nil {
		return fmt.Errorf("list leases in %s: %w", leaseNamespace, err)
	}
	return c.remove(ctx, "lease", objects, &c.removed.Leases, metav1.DeleteOptions{}, func(ctx context.Context, l item, o metav1.DeleteOptions) error {
		return leases.Delete(ctx, l.name, o)
	})
}

func (c *cleaner) csiNodes(ctx context.Context, nodes []item) error {
	if len(nodes) == 0 {
		return nil
	}
	csi, ours := c.client.StorageV1().CSINodes(), ofNodes(nodes)
	var objects []item
	err := pages(c.all(), func(o metav1.ListOptions) (*storagev1.CSINodeList, error) { return csi.List(ctx, o) },
		func(l *storagev1.CSINodeList) {
			for _, x := range l.Items {
				if ours(x.ObjectMeta) {
					objects = append(objects, objectOf(x.ObjectMeta))
				}
			}
		})
	if err != nil {
		return c.listError("csinodes", err)
	}
	return c.remove(ctx, "CSINode", objects, &c.removed.CSINodes, metav1.DeleteOptions{}, func(ctx context.Context, n item, o metav1.DeleteOptions) error {
		return csi.Delete(ctx, n.name, o)
	})
}

func (c *cleaner) certificateRequests(ctx context.Context) error {
	requests := c.client.CertificatesV1().CertificateSigningRequests()
	var objects []item
	err := pages(c.owned, func(o metav1.ListOptions) (*certificatesv1.CertificateSigningRequestList, error) {
		return requests.List(ctx, o)
	}, func(l *certificatesv1.CertificateSigningRequestList) {
		for _, r := range l.Items {
			objects = append(objects, objectOf(r.ObjectMeta))
		}
	})
	if err != nil {
		return c.listError("certificatesigningrequests", err)
	}
	return c.remove(ctx, "certificate request", objects, &c.removed.CertificateRequests, metav1.DeleteOptions{}, func(ctx context.Context, r item, o metav1.DeleteOptions) error {
		return requests.Delete(ctx, r.name, o)
	})
}

// rbac deletes bindings before roles, so that no binding dangles.
func (c *cleaner) rbac(ctx context.Context) error {
	bindings, roles := c.client.RbacV1().ClusterRoleBindings(), c.client.RbacV1().ClusterRoles()
	var bound, granted []item
	err := pages(c.owned, func(o metav1.ListOptions) (*rbacv1.ClusterRoleBindingList, error) { return bindings.List(ctx, o) },
		func(l *rbacv1.ClusterRoleBindingList) {
			for _, b := range l.Items {
				bound = append(bound, objectOf(b.ObjectMeta))
			}
		})
	if err != nil {
		return fmt.Errorf("list clusterrolebindings: %w", err)
	}
	err = pages(c.owned, func(o metav1.ListOptions) (*rbacv1.ClusterRoleList, error) { return roles.List(ctx, o) },
		func(l *rbacv1.ClusterRoleList) {
			for _, r := range l.Items {
				granted = append(granted, objectOf(r.ObjectMeta))
			}
		})
	if err != nil {
		return fmt.Errorf("list clusterroles: %w", err)
	}
	err = c.remove(ctx, "clusterrolebinding", bound, &c.removed.RBAC, metav1.DeleteOptions{}, func(ctx context.Context, b item, o metav1.DeleteOptions) error {
		return bindings.Delete(ctx, b.name, o)
	})
	if err != nil {
		return err
	}
	return c.remove(ctx, "clusterrole", granted, &c.removed.RBAC, metav1.DeleteOptions{}, func(ctx context.Context, r item, o metav1.DeleteOptions) error {
		return roles.Delete(ctx, r.name, o)
	})
}
