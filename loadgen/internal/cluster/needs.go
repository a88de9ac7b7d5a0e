package cluster

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	leaseNamespace = "kube-node-lease"
	// kubeletSigner is the signer of the client certificates of kubelets.
	kubeletSigner = "kubernetes.io/kube-apiserver-client-kubelet"
	// servingSigner is the signer of the serving certificates of kubelets.
	servingSigner = "kubernetes.io/kubelet-serving"
	// clientSigner is the signer of the client certificates of kube-proxies.
	clientSigner = "kubernetes.io/kube-apiserver-client"

	resourceGroup = "resource.k8s.io"

	definitions, definitionsGroup = "customresourcedefinitions", "apiextensions.k8s.io"
)

// need is one permission: a verb on a resource (or RESOURCE/SUBRESOURCE) in a namespace, or in the whole cluster if
// namespace is "". A need may also be a verb on a URL path.
type need struct {
	verb, group, resource, namespace string
	name                             string // name of the only object that the permission covers; "" means all objects
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

func each(verbs, group, resource, namespace string) []need {
	var out []need
	for verb := range strings.FieldsSeq(verbs) {
		out = append(out, need{verb: verb, group: group, resource: resource, namespace: namespace})
	}
	return out
}

// adminNeeds returns the permissions that the user needs for Setup and Cleanup. The functions signedNeeds and accountNeeds
// return the additional permissions for the identities of nodes.
func adminNeeds(ns string, s *plan.Plan) []need {
	needs := slices.Concat(
		each("create get list patch delete", "", "namespaces", ""),
		each("create get", "", "serviceaccounts", ns),
		each("create", "", "serviceaccounts/token", ns),
		each("create list delete", rbacv1.GroupName, "clusterroles", ""),
		each("create list delete", rbacv1.GroupName, "clusterrolebindings", ""),
		each("create", rbacv1.GroupName, "roles", ns),
		each("create", rbacv1.GroupName, "rolebindings", ns),
		each("list delete", "", "pods", ns),
	)
	if usesWidgets(s) {
		needs = append(needs, each("get create list delete", definitionsGroup, definitions, "")...)
	}
	for _, m := range s.Manifests() {
		if m.Namespaced {
			needs = append(needs, each("create get list", m.Resource.Group, m.Resource.Resource, ns)...)
			continue
		}
		needs = append(needs, each("create get list delete", m.Resource.Group, m.Resource.Resource, "")...)
	}
	if s.Nodes.Count == 0 {
		return needs
	}
	needs = append(needs, slices.Concat(
		each("list delete", "", "nodes", ""),
		// DaemonSets of other users also place pods on simulated nodes.
		each("list delete", "", "pods", ""),
		each("list delete", "coordination.k8s.io", "leases", leaseNamespace),
		each("list delete", "storage.k8s.io", "csinodes", ""),
	)...)
	if slices.ContainsFunc(s.Faults, func(f scenario.PlacedFault) bool { return f.OutOfService }) {
		needs = append(needs, each("get patch", "", "nodes", "")...)
	}
	if s.Nodes.HasAdminLabels() {
		needs = append(needs, each("patch", "", "nodes", "")...)
	}
	if hasDevices(s) {
		needs = append(needs, each("create list delete", resourceGroup, "deviceclasses", "")...)
		needs = append(needs, each("list delete", resourceGroup, "resourceslices", "")...)
	}
	if s.Nodes.KubeletAddress != "" {
		needs = append(needs, slices.Concat(
			each("get", "", "configmaps", "kube-system"),
			each("create", "authentication.k8s.io", "tokenreviews", ""),
			each("create", "authorization.k8s.io", "subjectaccessreviews", ""),
			[]need{{verb: "approve", group: "certificates.k8s.io", resource: "signers", name: servingSigner}},
			certificateNeeds(),
		)...)
	}
	if s.Nodes.Fidelity == node.Kubelet {
		needs = append(needs, each("list deletecollection", "", "events", "default")...)
	}
	return needs
}

// signedNeeds returns the permissions that the user needs for nodes with client certificates.
func signedNeeds(s *plan.Plan) []need {
	approve := func(signer string) need {
		return need{verb: "approve", group: "certificates.k8s.io", resource: "signers", name: signer}
	}
	needs := append(certificateNeeds(), approve(kubeletSigner))
	if s.Nodes.KubeProxy {
		needs = append(needs, approve(clientSigner))
	}
	return needs
}

// certificateNeeds returns the permissions to request and approve certificates that the cluster signs. It does not
// include the permissions on the signers.
func certificateNeeds() []need {
	const csr = "certificatesigningrequests"
	return append(each("create get list watch delete", "certificates.k8s.io", csr, ""), each("update", "certificates.k8s.io", csr+"/approval", "")...)
}

// loadNeeds returns the permissions that the load's identity needs. With fidelity "shared", they include the
// permissions of the simulated nodes, which then use this identity.
func loadNeeds(l *lookup, ns string) ([]need, error) {
	s := l.plan
	needs := slices.Concat(
		[]need{{verb: "get", url: "/metrics"}},
		each("get list watch create update patch delete deletecollection", "", "configmaps", ns),
		each("get list watch create update patch delete", "apps", "deployments", ns),
		each("list watch", "apps", "replicasets", ns),
		each("list watch", "discovery.k8s.io", "endpointslices", ns),
		each("get create update patch delete", "", "services", ns),
		each("get list watch", "", "pods", ns),
		each("get list watch", "", "nodes", ""),
	)
	for _, kind := range s.Workloads {
		if kind != scenario.Deployment {
			needs = append(needs, workloadNeeds(kind, ns)...)
		}
	}
	if anyAction(s, func(a scenario.Action) bool { return a.Gang > 0 }) {
		needs = append(needs, each("get create patch delete", "scheduling.k8s.io", "podgroups", ns)...)
	}
	if anyAction(s, func(a scenario.Action) bool { return a.Devices > 0 }) {
		needs = append(needs, each("get create patch delete", resourceGroup, "resourceclaimtemplates", ns)...)
	}
	if anyAction(s, func(a scenario.Action) bool { return a.Autoscales() }) {
		needs = append(needs, each("get create patch delete", "autoscaling", "horizontalpodautoscalers", ns)...)
	}
	requests, err := requestNeeds(l, ns)
	if err != nil {
		return nil, err
	}
	needs = append(needs, requests...)
	created, err := l.creations(ns, func(b plan.Batch) string {
		if b.OfLoad {
			return "create"
		}
		return ""
	})
	if err != nil {
		return nil, err
	}
	needs = append(needs, created...)
	needs = append(needs, grantNeeds(needs)...)
	followed, err := followNeeds(l, ns)
	if err != nil {
		return nil, err
	}
	needs = append(needs, followed...)
	if s.Nodes.Count > 0 && s.Nodes.Fidelity == node.Shared {
		needs = append(needs, slices.Concat(
			each("create get list watch", "", "nodes", ""),
			each("patch", "", "nodes/status", ""),
			each("create", "storage.k8s.io", "csinodes", ""),
			each("get list watch delete", "", "pods", ""),
			each("patch", "", "pods/status", ""),
			// Only in the run's namespace: otherwise the account could create tokens of every ServiceAccount.
			each("create", "", "serviceaccounts/token", ns),
			each("create get update delete", "coordination.k8s.io", "leases", ""),
		)...)
		if hasDevices(s) {
			needs = append(needs, each("create", resourceGroup, "resourceslices", "")...)
			needs = append(needs, each("get", resourceGroup, "resourceclaims", "")...)
		}
	}
	return needs, nil
}

// grantNeeds returns the permissions (escalate and bind) that a user needs, in addition to `needs`, to write roles and
// bindings with permissions that the user does not have.
func grantNeeds(needs []need) (more []need) {
	for _, n := range needs {
		if n.group != rbacv1.GroupName || !slices.Contains([]string{"create", "update", "patch"}, n.verb) {
			continue
		}
		switch n.resource {
		case "roles", "clusterroles":
			more = append(more, each("escalate", n.group, n.resource, n.namespace)...)
		case "rolebindings", "clusterrolebindings":
			more = append(more, slices.Concat(each("bind", n.group, "roles", n.namespace), each("bind", n.group, "clusterroles", n.namespace))...)
		}
	}
	return more
}

func workloadNeeds(kind, ns string) []need {
	const verbs = "get list watch create update patch delete"
	switch kind {
	case scenario.Job:
		return each(verbs, "batch", "jobs", ns)
	case scenario.CronJob:
		return append(each(verbs, "batch", "cronjobs", ns), each("list watch", "batch", "jobs", ns)...)
	}
	return each(verbs, "apps", strings.ToLower(kind)+"s", ns)
}

func anyAction(s *plan.Plan, is func(scenario.Action) bool) bool {
	return slices.ContainsFunc(s.Phases, func(p scenario.Phase) bool { return slices.ContainsFunc(p.Actions, is) })
}

func usesWidgets(s *plan.Plan) bool {
	return slices.ContainsFunc(s.Loads, func(l plan.Load) bool {
		return slices.ContainsFunc(l.Operations(), func(o scenario.Operation) bool { return o.Resource == scenario.WidgetResource })
	})
}

func madeBy(l *scenario.Load) map[string]bool {
	all := map[string]bool{}
	for _, o := range l.Operations() {
		if l.OwnObjects(o) {
			all[o.Resource] = true
		}
	}
	return all
}

// requestNeeds returns the permissions for the requests of loads. They apply in the run's namespace or, if a load
// covers several namespaces or its resource is cluster-scoped, in the whole cluster. They do not include the
// permissions that Setup needs.
func requestNeeds(look *lookup, ns string) ([]need, error) {
	var needs []need
	for _, l := range look.plan.Loads {
		if sub := l.PodSubresource(); sub != "" {
			needs = append(needs, each("get create", "", "pods/"+sub, ns)...)
		}
		replays, err := replayNeeds(look.discovery, ns, l.Load)
		if err != nil {
			return nil, err
		}
		needs = append(needs, replays...)
		for _, n := range object.Needs(*l.Load) {
			if n.Resource == "namespaces" && n.Verb == "create" || n.Resource == definitions {
				continue
			}
			where := ns
			if n.Cluster {
				where = ""
			} else if r := (schema.GroupResource{Group: n.Group, Resource: withoutSubresource(n.Resource)}); !slices.Contains(scenario.Manifests, r.String()) {
				// Do not look up resources in scenario.Manifests: they are namespaced, and may not exist yet.
				var err error
				if where, err = look.scope(r, ns); err != nil {
					return nil, err
				}
			}
			if x := (need{verb: n.Verb, group: n.Group, resource: n.Resource, name: n.Name, namespace: where}); !slices.Contains(needs, x) {
				needs = append(needs, x)
			}
		}
	}
	return needs, nil
}

func withoutSubresource(resource string) string {
	resource, _, _ = strings.Cut(resource, "/")
	return resource
}
