package topology

import (
	"encoding/base64"
	"fmt"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

func (m maker) metricsServer(name string) *component {
	const manifest = "as in metrics-server's manifest"
	c := newComponent(name, control.KindMetricsServer, URL(m.ports[name]))
	m.serving(c, pki.MetricsServer, pki.MetricsServing)
	c.set("kubeconfig", m.layout.Kubeconfig(pki.MetricsServer))
	c.set("kubelet-certificate-authority", m.layout.PKI().Cert(pki.ClientCA))
	c.setDeviation("kubelet-preferred-address-types", "InternalIP", "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP", "the nodes' names are not in DNS")
	c.setDeviation("kubelet-use-node-status-port", "true", "false", manifest)
	c.setDeviation("metric-resolution", "15s", "1m0s", manifest)
	return c
}

// Object is an API object that a plane applies. Path is its API path.
type Object struct{ Path, Manifest string }

const (
	// MetricsAPI is the path of the API that metrics-server serves.
	MetricsAPI = "/apis/metrics.k8s.io/v1beta1"
	// APIServices is the API path of APIServices. An APIService makes API servers proxy an API to another server.
	APIServices = "/apis/apiregistration.k8s.io/v1/apiservices"
	// ManagedBy is the label selector of the APIServices that the plane has applied.
	ManagedBy = "app.kubernetes.io/managed-by=stormglass"
)

// MetricsServerRights returns the service account and the RBAC objects from the manifest of metrics-server.
func MetricsServerRights() []Object {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	return []Object{
		{"/api/v1/namespaces/kube-system/serviceaccounts/metrics-server", `
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-server, namespace: kube-system}
`},
		{rbac + "clusterroles/system:aggregated-metrics-reader", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: system:aggregated-metrics-reader
  labels:
    rbac.authorization.k8s.io/aggregate-to-view: "true"
    rbac.authorization.k8s.io/aggregate-to-edit: "true"
    rbac.authorization.k8s.io/aggregate-to-admin: "true"
rules:
- {apiGroups: [metrics.k8s.io], resources: [pods, nodes], verbs: [get, list, watch]}
`},
		{rbac + "clusterroles/system:metrics-server", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:metrics-server"}
rules:
- {apiGroups: [""], resources: [nodes/metrics], verbs: [get]}
- {apiGroups: [""], resources: [pods, nodes], verbs: [get, list, watch]}
`},
		{rbac + "clusterrolebindings/system:metrics-server", metricsServerBinding("ClusterRoleBinding", "system:metrics-server", "ClusterRole", "system:metrics-server")},
		{rbac + "clusterrolebindings/metrics-server:system:auth-delegator", metricsServerBinding("ClusterRoleBinding", "metrics-server:system:auth-delegator", "ClusterRole", "system:auth-delegator")},
		{rbac + "namespaces/kube-system/rolebindings/metrics-server-auth-reader", metricsServerBinding("RoleBinding", "metrics-server-auth-reader", "Role", "extension-apiserver-authentication-reader")},
	}
}

func metricsServerBinding(kind, name, roleKind, role string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: {name: %q}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %q}
subjects:
- {kind: ServiceAccount, name: metrics-server, namespace: kube-system}
`, kind, name, roleKind, role)
}

// MetricsServerAPI returns the objects that make API servers proxy metrics-server's API to a port. authority is the CA
// certificate of metrics-server, in PEM. The Service has an external name, because endpoints may not be loopback
// addresses.
func MetricsServerAPI(port int, authority []byte) []Object {
	return []Object{
		{"/api/v1/namespaces/kube-system/services/" + pki.MetricsServerService, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: kube-system}
spec:
  type: ExternalName
  externalName: %q
  ports: [{name: https, port: %d, protocol: TCP, appProtocol: https}]
`, pki.MetricsServerService, Host, port)},
		{APIServices + "/v1beta1.metrics.k8s.io", fmt.Sprintf(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.metrics.k8s.io
  labels: {app.kubernetes.io/managed-by: stormglass}
spec:
  service: {name: %s, namespace: kube-system, port: %d}
  group: metrics.k8s.io
  version: v1beta1
  caBundle: %s
  groupPriorityMinimum: 100
  versionPriority: 100
`, pki.MetricsServerService, port, base64.StdEncoding.EncodeToString(authority))},
	}
}
