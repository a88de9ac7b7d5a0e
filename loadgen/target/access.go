package target

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/stormglass/stormglass/loadgen/node"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	leaseNamespace = "kube-node-lease"
	// kubeletSigner signs the client certificates of kubelets.
	kubeletSigner = "kubernetes.io/kube-apiserver-client-kubelet"
)

// need is one thing that somebody has to be allowed: a verb on a resource
// (with its subresource after a slash), in a namespace or, if that is "", in
// all of the cluster; or a verb on a URL.
type need struct {
	verb, group, resource, namespace string
	name                             string // of the one object, or ""
	url                              string
}

func (n need) String() string {
	if n.url != "" {
		return n.verb + " " + n.url
	}
	s := n.verb + " " + n.resource
	if n.group != "" {
		resource, sub, nested := strings.Cut(n.resource, "/")
		s = n.verb + " " + resource + "." + n.group
		if nested {
			s += "/" + sub
		}
	}
	if n.name != "" {
		s += " " + n.name
	}
	if n.namespace != "" {
		s += " in namespace " + n.namespace
	}
	return s
}

// each is one need for each verb.
func each(verbs, group, resource, namespace string) []need {
	var out []need
	for verb := range strings.FieldsSeq(verbs) {
		out = append(out, need{verb: verb, group: group, resource: resource, namespace: namespace})
	}
	return out
}

// adminNeeds are what Setup, the nodes' identities and Cleanup do with the
// user's own identity.
func adminNeeds(ns string, s *scenario.Scenario) []need {
	needs := slices.Concat(
		each("create get list delete", "", "namespaces", ""),
		each("create get", "", "serviceaccounts", ns),
		each("create", "", "serviceaccounts/token", ns),
		each("create list delete", rbacv1.GroupName, "clusterroles", ""),
		each("create list delete", rbacv1.GroupName, "clusterrolebindings", ""),
		each("create", rbacv1.GroupName, "roles", ns),
		each("create", rbacv1.GroupName, "rolebindings", ns),
		each("list delete", "", "pods", ns),
	)
	if s.Nodes.Count == 0 {
		return needs
	}
	needs = append(needs, slices.Concat(
		each("list delete", "", "nodes", ""),
		// DaemonSets put pods on simulated nodes too.
		each("list delete", "", "pods", ""),
		each("list delete", "coordination.k8s.io", "leases", leaseNamespace),
		each("list delete", "storage.k8s.io", "csinodes", ""),
	)...)
	if s.Nodes.Fidelity == node.Shared {
		return needs
	}
	const csr = "certificatesigningrequests"
	return append(needs, slices.Concat(
		each("create get list watch delete", "certificates.k8s.io", csr, ""),
		each("update", "certificates.k8s.io", csr+"/approval", ""),
		[]need{{verb: "approve", group: "certificates.k8s.io", resource: "signers", name: kubeletSigner}},
	)...)
}

// loadNeeds are what the identity of load does: all writes are in the run's
// namespace, but for those of shared simulated nodes.
func loadNeeds(d discovery.DiscoveryInterface, ns string, s *scenario.Scenario) ([]need, error) {
	needs := slices.Concat(
		[]need{{verb: "get", url: "/metrics"}},
		each("get list watch create update patch delete deletecollection", "", "configmaps", ns),
		each("get list watch create update patch delete", "apps", "deployments", ns),
		each("get create update patch delete", "", "services", ns),
		each("get list watch", "", "pods", ns),
		each("get list watch", "", "nodes", ""),
	)
	reads, err := readNeeds(d, ns, s)
	if err != nil {
		return nil, err
	}
	needs = append(needs, reads...)
	if s.Nodes.Count > 0 && s.Nodes.Fidelity == node.Shared {
		needs = append(needs, slices.Concat(
			each("create get list watch", "", "nodes", ""),
			each("patch", "", "nodes/status", ""),
			each("create", "storage.k8s.io", "csinodes", ""),
			each("get list watch delete", "", "pods", ""),
			each("patch", "", "pods/status", ""),
			// Of the run's pods only: the right to make anybody's token is one
			// to hand to nobody.
			each("create", "", "serviceaccounts/token", ns),
			each("create get update delete", "coordination.k8s.io", "leases", ""),
		)...)
	}
	return needs, nil
}

// readNeeds are those of loads that get or list what is not ours: in the
// run's namespace, or in the cluster if the resource has no namespace.
func readNeeds(d discovery.DiscoveryInterface, ns string, s *scenario.Scenario) ([]need, error) {
	verbs := map[schema.GroupResource][]string{}
	var order []schema.GroupResource
	for _, l := range s.Loads() {
		r := schema.ParseGroupResource(l.Resource)
		if l.Kind != "requests" || l.Resource == "configmaps" {
			continue
		}
		if _, seen := verbs[r]; !seen {
			order = append(order, r)
		}
		verbs[r] = append(verbs[r], l.Verb)
	}
	if len(order) == 0 {
		return nil, nil
	}
	groups, err := restmapper.GetAPIGroupResources(d)
	if err != nil {
		return nil, fmt.Errorf("discover its resources: %w", explain(err))
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	var needs []need
	for _, r := range order {
		kind, err := mapper.KindFor(r.WithVersion(""))
		if err != nil {
			return nil, fmt.Errorf("it has no resource %q (`kubectl api-resources` lists them)", r)
		}
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("it has no resource %q: %w", r, err)
		}
		where := ""
		if mapping.Scope.Name() == "namespace" {
			where = ns
		}
		slices.Sort(verbs[r])
		needs = append(needs, each(strings.Join(slices.Compact(verbs[r]), " "), r.Group, r.Resource, where)...)
	}
	return needs, nil
}

// atOnce bounds requests under way to a cluster that we prepare or clean up.
const atOnce = 16

// checkAccess asks for each need whether we are allowed it. What is missing
// is one error that names all of it. A user may give only rights that they
// hold, so the needs of the load's identity are asked for too.
func checkAccess(ctx context.Context, client kubernetes.Interface, needs []need) error {
	denied := make([]bool, len(needs))
	err := forEach(ctx, len(needs), func(ctx context.Context, i int) error {
		allowed, err := mayI(ctx, client, needs[i])
		denied[i] = !allowed
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot be asked for its permissions: %w", err)
	}
	var missing []string
	for i, n := range needs {
		if text := n.String(); denied[i] && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("lacks permission to %s (a cluster-admin has all of them; `kubectl auth can-i VERB RESOURCE` checks one)", strings.Join(missing, "; "))
}

func mayI(ctx context.Context, client kubernetes.Interface, n need) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{}
	if n.url != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: n.url, Verb: n.verb}
	} else {
		resource, sub, _ := strings.Cut(n.resource, "/")
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb: n.verb, Group: n.group, Resource: resource, Subresource: sub, Namespace: n.namespace, Name: n.name,
		}
	}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// rules are the RBAC rules that grant the needs of one namespace ("" for the
// cluster's).
func rules(needs []need, namespace string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	at := map[string]int{}
	for _, n := range needs {
		if n.namespace != namespace {
			continue
		}
		key := n.url + " " + n.group + " " + n.resource
		i, ok := at[key]
		if !ok {
			rule := rbacv1.PolicyRule{APIGroups: []string{n.group}, Resources: []string{n.resource}}
			if n.url != "" {
				rule = rbacv1.PolicyRule{NonResourceURLs: []string{n.url}}
			}
			i, at[key] = len(out), len(out)
			out = append(out, rule)
		}
		if !slices.Contains(out[i].Verbs, n.verb) {
			out[i].Verbs = append(out[i].Verbs, n.verb)
		}
	}
	return out
}

// forEach calls f for 0 to n-1, a few at a time, and returns the first error.
func forEach(ctx context.Context, n int, f func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
