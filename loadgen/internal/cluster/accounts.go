package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
)

// nodeAccounts are the ServiceAccounts of simulated nodes if the nodes have no client certificates. Their namespace
// contains no other accounts. So one binding to the group of all accounts in that namespace is enough. A binding with
// one subject per node would be slow, because RBAC checks every subject of a binding for each request.
type nodeAccounts struct{ *node.ServiceAccounts }

func (t *Target) accountNamespace() string { return t.Namespace + "-nodes" }

// kubeletNeeds returns the permissions of a simulated kubelet. The kubelet may use tokens, ConfigMaps and Secrets only
// in the run's namespace: unlike the Node authorizer, RBAC cannot limit them to objects of the node's pods, and a node
// must not have access to objects of the whole cluster.
func kubeletNeeds(ns string, s *plan.Plan) []need {
	needs := slices.Concat(
		each("create get list watch", "", "nodes", ""),
		each("patch", "", "nodes/status", ""),
		each("create get", "storage.k8s.io", "csinodes", ""),
		each("create get update delete", "coordination.k8s.io", "leases", ""),
		each("get list watch delete", "", "pods", ""),
		each("patch", "", "pods/status", ""),
		each("create patch", "", "events", ""),
		each("list watch", "", "services", ""),
		each("list watch", "storage.k8s.io", "csidrivers", ""),
		each("list watch", "node.k8s.io", "runtimeclasses", ""),
		each("list watch", "certificates.k8s.io", "podcertificaterequests", ""),
		each("create", "", "serviceaccounts/token", ns),
		each("list watch", "", "configmaps", ns),
		each("list watch", "", "secrets", ns),
	)
	if s.Nodes.Fidelity == node.Kubelet {
		needs = append(needs, each("deletecollection", resourceGroup, "resourceslices", "")...)
	}
	if hasDevices(s) {
		needs = append(needs, each("create list watch", resourceGroup, "resourceslices", "")...)
		needs = append(needs, each("get", resourceGroup, "resourceclaims", "")...)
	}
	return needs
}

func proxyNeeds() []need {
	return slices.Concat(
		each("list watch", "", "nodes", ""),
		each("list watch", "", "services", ""),
		each("list watch", "discovery.k8s.io", "endpointslices", ""),
		each("list watch", "networking.k8s.io", "servicecidrs", ""),
		each("create patch", "", "events", ""),
	)
}

// accountNeeds returns the permissions that the user needs if nodes authenticate as ServiceAccounts: to create these
// accounts, and to grant them their permissions. accounts is the name of their namespace.
func accountNeeds(accounts, ns string, s *plan.Plan) []need {
	return slices.Concat(
		each("create", "", "serviceaccounts", accounts),
		each("create", "", "serviceaccounts/token", accounts),
		nodeNeeds(ns, s),
	)
}

// nodeNeeds returns the permissions of all node accounts, including the accounts of kube-proxies if the nodes have kube-proxies.
func nodeNeeds(ns string, s *plan.Plan) []need {
	needs := kubeletNeeds(ns, s)
	if s.Nodes.KubeProxy {
		needs = append(needs, proxyNeeds()...)
	}
	return needs
}

// makeNodeAccounts creates the namespace of the nodes' ServiceAccounts, grants the accounts their permissions, and
// waits until the permissions take effect. It does nothing unless the nodes authenticate with tokens.
func (t *Target) makeNodeAccounts(ctx context.Context, client kubernetes.Interface) error {
	if !t.credentials.tokens {
		return nil
	}
	name := t.accountNamespace()
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: t.meta(name)}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	accounts, err := node.NewServiceAccounts(t.Admin, client, name, t.meta("").Labels)
	if err != nil {
		return err
	}
	t.accounts = &nodeAccounts{accounts}
	needs := nodeNeeds(t.Namespace, t.plan)
	nodes := rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + name}
	if err := t.grant(ctx, client, name, needs, []rbacv1.Subject{nodes}); err != nil {
		return err
	}
	config, err := accounts.For(ctx, t.NodePrefix()+"0")
	if err != nil {
		return err
	}
	return awaitRights(ctx, t.waiting, "the nodes", config, needs)
}
