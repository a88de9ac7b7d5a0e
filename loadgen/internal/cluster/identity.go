package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/atomicfile"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	// loadAccount is the name of the load's ServiceAccount in the run's namespace.
	loadAccount = "stormglass-load"
	// tokenLife is the requested lifetime of a token.
	tokenLife = time.Hour
	// settle is the shortest pause between two checks of a condition, such as whether an object exists.
	settle = 50 * time.Millisecond
)

// groups returns the namespace groups of the scenario by the names of their namespaces.
func (t *Target) groups() map[string]*scenario.NamespaceGroup {
	all := map[string]*scenario.NamespaceGroup{}
	for i := range t.plan.Namespaces {
		g := &t.plan.Namespaces[i]
		for _, name := range g.Names() {
			all[name] = g
		}
	}
	return all
}

// refuseExisting returns an error if a namespace of a namespace group already exists in the cluster. The run never
// adopts a namespace, because it deletes its namespaces at the end.
func (t *Target) refuseExisting(ctx context.Context, client kubernetes.Interface) error {
	groups := t.groups()
	if len(groups) == 0 {
		return nil
	}
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i].ObjectMeta
		if groups[m.Name] == nil {
			continue
		}
		hint := "rename the group in namespaces:, or delete the namespace"
		if run := m.Labels[RunLabel]; run != "" {
			hint = "run " + run + " created it; if it has ended, remove it with `loadgen cleanup --run " + run + "`"
		}
		return fmt.Errorf("namespace %s of group %s already exists (%s)", m.Name, groups[m.Name].Name, hint)
	}
	return nil
}

func (t *Target) makeNamespaces(ctx context.Context, client kubernetes.Interface) error {
	groups := t.groups()
	create := func(ctx context.Context, name string, annotations map[string]string) (types.UID, error) {
		namespace := &corev1.Namespace{ObjectMeta: t.clusterMeta(name)}
		namespace.Annotations = annotations
		maps.Copy(namespace.Labels, t.plan.NamespaceLabels)
		if g := groups[name]; g != nil {
			namespace.Annotations = g.Annotations
			maps.Copy(namespace.Labels, g.Labels)
		}
		made, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("create namespace %s: %w", name, err)
		}
		return made.UID, nil
	}
	var expires map[string]string
	if t.deadline != nil {
		expires = map[string]string{DeadlineAnnotation: t.deadline.text()}
	}
	var err error
	if t.uid, err = create(ctx, t.Namespace, expires); err != nil {
		return err
	}
	if t.deadline != nil {
		t.deadline.keep(ctx)
	}
	others := t.namespaces[1:]
	return load.Parallel(ctx, len(others), func(ctx context.Context, i int) error {
		_, err := create(ctx, others[i], nil)
		return err
	})
}

// AwaitServiceAccount waits for the default ServiceAccount of the run's namespace. Until it exists, the API server
// refuses pods, and a rollout would measure the back-off of the ReplicaSet controller. A controller manager that has
// just started needs about five seconds to create it. Setup itself waits for it only if pods may be created before the
// first phase.
func (t *Target) AwaitServiceAccount(ctx context.Context) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	return t.awaitServiceAccount(ctx, client)
}

func (t *Target) awaitServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	defer t.waiting("the cluster to create ServiceAccount default of namespace " + t.Namespace)()
	return await(ctx, fmt.Sprintf("ServiceAccount %s/default", t.Namespace), func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(t.Namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// podless lists resources whose objects do not cause controllers to create pods.
var podless = []string{"configmaps", "nodes", "secrets", "services", "leases.coordination.k8s.io", scenario.WidgetResource}

// createsPodsEarly reports whether pods may be created before the first phase: by the scenario's objects, or by a load
// that prepares objects of a resource not in podless.
func (t *Target) createsPodsEarly() bool {
	return len(t.manifests) > 0 || len(t.plan.Batches) > 0 || slices.ContainsFunc(t.plan.Loads, func(l plan.Load) bool {
		operations := l.Operations()
		return len(operations) == 0 || slices.ContainsFunc(operations, func(o scenario.Operation) bool { return !slices.Contains(podless, o.Resource) })
	})
}

// awaitTimeout is the time limit for results of controllers that normally take a few seconds at most.
const awaitTimeout = time.Minute

// await checks cond repeatedly until it returns true, for at most awaitTimeout. `what` names the condition in errors.
func await(ctx context.Context, what string, cond wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeoutCause(ctx, awaitTimeout, fmt.Errorf("not found within %s", awaitTimeout))
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, settle, true, cond)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

// makeIdentity creates the ServiceAccount of the load and grants it the permissions that the load needs. The load does
// not use the user's identity, because priority and fairness exempts a cluster-admin in system:masters.
func (t *Target) makeIdentity(ctx context.Context, client kubernetes.Interface) error {
	defer t.waiting("the cluster to create the ServiceAccount of the load, its permissions and its token")()
	_, err := client.CoreV1().ServiceAccounts(t.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: t.meta(loadAccount)}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create serviceaccount %s: %w", loadAccount, err)
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: loadAccount, Namespace: t.Namespace}}
	if t.tenants {
		subjects = append(subjects, tenants())
	}
	if err := t.grant(ctx, client, t.Namespace, t.needs, subjects); err != nil {
		return err
	}
	if t.identity, err = newIdentity(ctx, client, t.Namespace); err != nil {
		return err
	}
	return t.useIdentity()
}

func tenants() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: scenario.TenantsGroup}
}

// grant grants `subjects` the permissions in `needs`, in the cluster and in the run's namespaces. name is the name of
// the roles and bindings. It must be unique in the cluster.
func (t *Target) grant(ctx context.Context, client kubernetes.Interface, name string, needs []need, subjects []rbacv1.Subject) error {
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	rules, rbac, opts := rulesOf(needs), client.RbacV1(), metav1.CreateOptions{}
	_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: t.clusterMeta(name), Rules: rules[""]}, opts)
	if err != nil {
		return fmt.Errorf("create clusterrole %s: %w", name, err)
	}
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: t.clusterMeta(name), Subjects: subjects, RoleRef: ref("ClusterRole")}, opts)
	if err != nil {
		return fmt.Errorf("create clusterrolebinding %s: %w", name, err)
	}
	return load.Parallel(ctx, len(t.namespaces), func(ctx context.Context, i int) error {
		ns := t.namespaces[i]
		_, err := rbac.Roles(ns).Create(ctx, &rbacv1.Role{ObjectMeta: t.meta(name), Rules: rules[t.Namespace]}, opts)
		if err != nil {
			return fmt.Errorf("create role %s/%s: %w", ns, name, err)
		}
		_, err = rbac.RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: t.meta(name), Subjects: subjects, RoleRef: ref("Role")}, opts)
		if err != nil {
			return fmt.Errorf("create rolebinding %s/%s: %w", ns, name, err)
		}
		return nil
	})
}

// useIdentity makes the load and the scrapes authenticate with the token of the load's ServiceAccount.
func (t *Target) useIdentity() error {
	t.Load = rest.AnonymousClientConfig(t.Admin)
	t.Load.QPS = -1
	t.Load.BearerTokenFile = t.identity.tokenFile // client-go reads the file again after a renewal
	caFile := t.Admin.CAFile
	if caFile == "" && len(t.Admin.CAData) > 0 {
		caFile = filepath.Join(t.identity.scratch.Path, "ca.crt")
		if err := os.WriteFile(caFile, t.Admin.CAData, 0o600); err != nil {
			return fmt.Errorf("write the cluster's CA: %w", err)
		}
	}
	for i := range t.Scrape {
		if s := &t.Scrape[i]; s.URL == metricsURL(t.Admin) && s.TokenFile == "" && s.CertFile == "" {
			s.TokenFile, s.CAFile = t.identity.tokenFile, caFile
		}
	}
	return nil
}

// awaitRights waits until the user of cfg has all permissions in `needs`. New permissions take effect with a delay,
// because authorizers learn about RBAC objects through watches. `who` names the user in messages.
func awaitRights(ctx context.Context, waiting func(string) func(), who string, cfg *rest.Config, needs []need) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	defer waiting("the permissions of " + who + " to take effect")()
	return await(ctx, "the permissions of "+who, func(ctx context.Context) (bool, error) {
		for _, n := range needs {
			if ok, err := mayI(ctx, client, n); !ok {
				if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
					err = nil // an API server has not yet seen the new account
				}
				return false, err
			}
		}
		return true, nil
	})
}

type identity struct {
	scratch   *scratch.Dir
	tokenFile string
	renewal   *background
}

func newIdentity(ctx context.Context, client kubernetes.Interface, namespace string) (*identity, error) {
	temp, err := scratch.New(scratch.Token)
	if err != nil {
		return nil, fmt.Errorf("create a directory for the token of %s: %w", loadAccount, err)
	}
	i := &identity{scratch: temp, tokenFile: filepath.Join(temp.Path, "token")}
	life, err := i.renew(ctx, client, namespace)
	if err != nil {
		return nil, errors.Join(err, temp.Remove())
	}
	i.renewal = repeat(ctx, life, func(ctx context.Context) time.Duration {
		life, _ := i.renew(ctx, client, namespace) // after an error, the old token is still valid for a fifth of its life
		return life
	})
	return i, nil
}

// renew writes a new token to the file. Even after an error, it returns the time after which to renew the token.
func (i *identity) renew(ctx context.Context, client kubernetes.Interface, namespace string) (time.Duration, error) {
	token, life, err := node.RequestToken(ctx, client, namespace, loadAccount, tokenLife)
	if err == nil {
		if err = atomicfile.Write(i.tokenFile, []byte(token)); err != nil {
			return node.TokenRetry, fmt.Errorf("write token: %w", err)
		}
	}
	return life, err
}

// close ends the renewal of the token and removes the files. It may be called again.
func (i *identity) close() error {
	i.renewal.end()
	return i.scratch.Remove()
}
