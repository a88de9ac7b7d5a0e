package topology

import (
	"strconv"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

const nodeRoutes = "cloudControllerManager: each node gets a range of pod addresses, to which the cloud has a route"

func (m maker) cloudControllerManager(name string) *component {
	cfg := m.cfg.CloudControllerManager
	c := newComponent(name, control.KindCloudControllerManager, URL(m.ports[name]))
	m.serving(c, pki.CloudControllers, pki.CloudServing)
	c.set("kubeconfig", m.layout.Kubeconfig(pki.CloudControllers))
	c.set("cloud-provider", control.ProviderName)
	c.set("cloud-config", m.layout.CloudConfig())
	c.setDeviation("use-service-account-credentials", "true", "false", "as in every production cluster: each controller uses its own service account")
	c.setDeviation("allocate-node-cidrs", "true", "false", nodeRoutes)
	c.setDeviation("cluster-cidr", PodRange, "", nodeRoutes)
	c.limit(cfg.QPS, cfg.Burst)
	return c
}

func (m maker) cloudAPI(name string) *component {
	cfg := m.cfg.CloudControllerManager.Cloud
	c := m.service(name)
	c.set("state-file", m.layout.CloudState())
	c.set("delay", cfg.Delay.String())
	c.set("jitter", cfg.Jitter.String())
	c.set("throttle", strconv.FormatFloat(cfg.Throttle, 'f', -1, 64))
	c.set("max-load-balancers", strconv.Itoa(cfg.LoadBalancers))
	c.set("max-routes", strconv.Itoa(cfg.Routes))
	c.set("load-balancer-time", cfg.LoadBalancerTime.String())
	return c
}

// CloudControllersRights returns the RBAC objects of cloud-controller-manager. API servers have default roles for the
// service accounts of its controllers, but not for cloud-controller-manager itself.
func CloudControllersRights() []Object {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	return []Object{
		{rbac + "clusterroles/system:cloud-controller-manager", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:cloud-controller-manager"}
rules:
- {apiGroups: [""], resources: [events], verbs: [create, patch, update]}
- {apiGroups: [""], resources: [nodes, services], verbs: [list, watch]}
- {apiGroups: [""], resources: [serviceaccounts], verbs: [create, get]}
- {apiGroups: [""], resources: [serviceaccounts/token], verbs: [create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [cloud-controller-manager], verbs: [get, update]}
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
`},
		{rbac + "clusterrolebindings/system:cloud-controller-manager", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:cloud-controller-manager"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:cloud-controller-manager"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:cloud-controller-manager"}
`},
	}
}
