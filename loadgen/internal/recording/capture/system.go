package capture

import (
	"regexp"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Reasons why a recording excludes requests.
const (
	fromKubelets   = "kubelets"
	fromController = "kube-controller-manager"
	fromScheduler  = "kube-scheduler"
	fromProxies    = "kube-proxy"
	fromAPIServer  = "kube-apiserver"
	fromCloud      = "cloud-controller-manager"
	fromBootstrap  = "node bootstrap"
	fromStormglass = "Stormglass itself"
	forNoResource  = "no resource (health, metrics, discovery)"
	ofUnknownVerb  = "a verb that the API does not have"
	ofNoKind       = "objects without apiVersion, kind or name"
	outsideWindow  = "outside --from and --to"
	beforeStart    = "received before the recording begins"
)

// ownAgent matches the user agents of Stormglass's clients, except the agent of loads (apiclient.DefaultAgent) and of
// simulated nodes. client-go derives most of them from the name of the program.
var ownAgent = regexp.MustCompile(`^((loadgen|controlplane)/v\S+ \(\S+\) kubernetes/\S+|stormglass|stormglass-recorder|stormglass-profiles)$`)

// systemSource returns the system component that sent a request, or "" for another client. It recognizes the user names
// of kubeadm and of managed clusters. It recognizes Stormglass by the user agent, because other clients may have the
// same users. It returns "" for the requests of a replay, which have other users and recorded user agents.
func systemSource(user, as, agent string) string {
	if as == "" && ownAgent.MatchString(agent) {
		return fromStormglass
	}
	if source, known := systemUsers[user]; known {
		return source
	}
	switch {
	case strings.HasPrefix(user, "system:node:"):
		return fromKubelets
	case strings.HasPrefix(user, "system:bootstrap:"):
		return fromBootstrap
	}
	account, ok := strings.CutPrefix(user, kubeSystem)
	if ok && (strings.HasPrefix(agent, "kube-controller-manager/") || isController(account)) {
		return fromController
	}
	return ""
}

// kubeSystem is the prefix of the users of service accounts in kube-system.
const kubeSystem = "system:serviceaccount:kube-system:"

// systemUsers maps user names to the system components that use them.
var systemUsers = map[string]string{
	"system:kube-controller-manager": fromController, "system:kube-scheduler": fromScheduler, "system:kube-proxy": fromProxies,
	"system:apiserver": fromAPIServer, "system:kube-apiserver": fromAPIServer, "system:aggregator": fromAPIServer,
	"system:cloud-controller-manager": fromCloud,
	kubeSystem + "kube-scheduler":     fromScheduler, kubeSystem + "kube-proxy": fromProxies, kubeSystem + "cloud-controller-manager": fromCloud,
	"system:bootstrap:" + control.BootstrapTokenID: "", // sends the load of a bundled control plane
}

// isController reports whether a service account belongs to a controller of kube-controller-manager
// (bootstrappolicy/controller_policy.go, and the names in older releases). The suffix -controller is not sufficient,
// because service accounts of add-ons have it, too.
func isController(account string) bool {
	switch account {
	case "attachdetach-controller", "bootstrap-signer", "certificate-controller", "clusterrole-aggregation-controller", "cronjob-controller",
		"daemon-set-controller", "deployment-controller", "device-taint-eviction-controller", "disruption-controller", "endpoint-controller",
		"endpointslice-controller", "endpointslicemirroring-controller", "ephemeral-volume-controller", "expand-controller",
		"generic-garbage-collector", "horizontal-pod-autoscaler", "job-controller", "kube-apiserver-serving-clustertrustbundle-publisher",
		"legacy-service-account-token-cleaner", "namespace-controller", "node-controller", "persistent-volume-binder", "pod-garbage-collector",
		"podcertificaterequestcleaner", "podgroup-protection-controller", "pv-protection-controller", "pvc-protection-controller",
		"replicaset-controller", "replication-controller", "resource-claim-controller", "resourcepoolstatusrequest-controller",
		"resourcequota-controller", "root-ca-cert-publisher", "route-controller", "selinux-warning-controller", "service-account-controller",
		"service-ca-cert-publisher", "service-cidrs-controller", "service-controller", "statefulset-controller",
		"storage-version-garbage-collector", "storage-version-migrator-controller", "taint-eviction-controller", "token-cleaner",
		"tokens-controller", "ttl-after-finished-controller", "ttl-controller", "validatingadmissionpolicy-status-controller",
		"volumeattributesclass-protection-controller":
		return true
	}
	return false
}
