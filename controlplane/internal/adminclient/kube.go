package adminclient

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

// LeaseTaken returns nil when a component of a kind has taken the lease since a
// time. It is a component of this plane: DeleteLeases has removed older leases.
func (c *Client) LeaseTaken(ctx context.Context, kind string, since time.Time) error {
	lease, err := c.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, kind, metav1.GetOptions{})
	if err != nil {
		return err
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.AcquireTime == nil || spec.AcquireTime.Before(&metav1.MicroTime{Time: since}) {
		return fmt.Errorf("the lease %s has no holder", lease.Name)
	}
	return nil
}

// DeleteLeases deletes the leases of the scheduler and the controller manager, whose
// holders must be dead: new leaders would wait 15 s for them.
func (c *Client) DeleteLeases(ctx context.Context) error {
	for _, kind := range []string{control.KindScheduler, control.KindControllerManager} {
		err := c.kube.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, kind, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the lease of the last %s: %w", kind, err)
		}
	}
	return nil
}

// CreateDefaultServiceAccount creates the service account without which no pod can
// be created in the default namespace. The controller manager creates it too, but,
// under its own limit of 20 requests/s, only some 4 s after it leads: the plane
// would report itself ready and refuse pods.
func (c *Client) CreateDefaultServiceAccount(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := c.kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the default service account: %w", err)
	}
	return nil
}

// GrantLoadgen binds the loadgen user to cluster-admin by RBAC.
func (c *Client) GrantLoadgen(ctx context.Context) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: pki.LoadgenUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: pki.LoadgenUser}},
	}
	_, err := c.kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("grant rights to %s: %w", pki.LoadgenUser, err)
	}
	return nil
}
