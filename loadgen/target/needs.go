package target

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
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
	requests, err := requestNeeds(d, ns, s)
	if err != nil {
		return nil, err
	}
	needs = append(needs, requests...)
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

// use is what a load does to a resource.
type use struct {
	resource schema.GroupResource
	verbs    []string
	cluster  bool // across namespaces
}

// own are the verbs that making a load's objects takes.
const own = " create update get list"

// madeBy are the resources that a load makes objects of before it starts.
func madeBy(l *scenario.Load) map[string]bool {
	all := map[string]bool{}
	if l.Kind != "changes" { // those are of their watches
		for _, o := range l.Operations() {
			if l.OwnObjects(o) {
				all[o.Resource] = true
			}
		}
	}
	return all
}

// usesOf are what a load does, its preparations included.
func usesOf(l *scenario.Load) []use {
	made := func(o scenario.Operation) string {
		if l.OwnObjects(o) {
			return own
		}
		return ""
	}
	of := func(o scenario.Operation, verbs string) use {
		return use{schema.ParseGroupResource(o.Resource), strings.Fields(verbs), o.Scope == "cluster"}
	}
	if l.Kind == "watches" {
		return []use{of(l.Operation, "list watch patch"+made(l.Operation))}
	}
	var uses []use
	if l.Kind == "requests" {
		for _, o := range l.Operations() {
			verbs := map[string]string{
				"get":    "get list", // names are found by a list
				"delete": "delete create",
				"apply":  "patch create",
			}[o.Verb]
			if verbs == "" {
				verbs = o.Verb
			}
			uses = append(uses, of(o, verbs+made(o)))
		}
	}
	return uses
}

// requestNeeds are those of loads: in the run's namespace, or in the cluster
// if they reach across namespaces or the resource has none.
func requestNeeds(d discovery.DiscoveryInterface, ns string, s *scenario.Scenario) ([]need, error) {
	var needs []need
	var mapper meta.RESTMapper
	for _, l := range s.Loads() {
		for _, u := range usesOf(l.Load) {
			where := ns
			if u.cluster {
				where = ""
			}
			if !slices.Contains(scenario.Manifests, u.resource.String()) { // those are namespaced, if they exist yet or not
				namespaced, err := isNamespaced(d, &mapper, u.resource)
				if err != nil {
					return nil, err
				}
				if !namespaced {
					where = ""
				}
			}
			for _, n := range each(strings.Join(u.verbs, " "), u.resource.Group, u.resource.Resource, where) {
				if !slices.Contains(needs, n) {
					needs = append(needs, n)
				}
			}
		}
		for _, t := range l.Tenants {
			needs = append(needs, need{verb: "impersonate", resource: "users", name: scenario.TenantUser(t.Name)})
			for _, g := range append([]string{scenario.TenantsGroup}, t.Groups...) {
				needs = append(needs, need{verb: "impersonate", resource: "groups", name: g})
			}
		}
	}
	return needs, nil
}

// isNamespaced asks the cluster, once for all resources.
func isNamespaced(d discovery.DiscoveryInterface, mapper *meta.RESTMapper, r schema.GroupResource) (bool, error) {
	if *mapper == nil {
		groups, err := restmapper.GetAPIGroupResources(d)
		if err != nil {
			return false, fmt.Errorf("discover its resources: %w", explain(err))
		}
		*mapper = restmapper.NewDiscoveryRESTMapper(groups)
	}
	kind, err := (*mapper).KindFor(r.WithVersion(""))
	if err != nil {
		return false, fmt.Errorf("it has no resource %q (`kubectl api-resources` lists them)", r)
	}
	mapping, err := (*mapper).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, fmt.Errorf("it has no resource %q: %w", r, err)
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}
