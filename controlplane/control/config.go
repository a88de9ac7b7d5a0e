// Package control is the contract between the programs controlplane and loadgen: the
// configuration of a control plane (Config), the description of a running control plane
// (Cluster, Status), and the client of its control socket. It intentionally has few
// dependencies, because it is the only package of controlplane that loadgen imports.
package control

import (
	"fmt"
	"time"
)

// Config configures a bundled control plane (field `controlPlane` of a scenario). By default, the control plane has one
// process each of etcd, kube-apiserver, kube-scheduler and kube-controller-manager, with upstream's defaults, except a
// few settings that each report lists.
type Config struct {
	// Version: Kubernetes version, "1.37" (default), "1.36" or "1.35"; it also selects the etcd version
	// (docs/reference/versions.md)
	Version string `yaml:"version,omitempty" json:"version,omitempty"`
	// Versions: versions of components that differ from `version`, by kind or name: {kube-controller-manager: "1.36",
	// kube-apiserver-1: "1.36"}
	Versions map[string]string `yaml:"versions,omitempty" json:"versions,omitempty"`
	// EmulatedVersion: version that API servers, scheduler and controller manager emulate, such as "1.36"
	EmulatedVersion string `yaml:"emulatedVersion,omitempty" json:"emulatedVersion,omitempty"`

	Etcd              Etcd              `yaml:"etcd,omitempty" json:"etcd,omitempty"`                           // settings of the etcd members
	APIServer         APIServer         `yaml:"apiServer,omitempty" json:"apiServer,omitempty"`                 // settings of kube-apiserver
	ControllerManager ControllerManager `yaml:"controllerManager,omitempty" json:"controllerManager,omitempty"` // settings of kube-controller-manager
	Scheduler         Scheduler         `yaml:"scheduler,omitempty" json:"scheduler,omitempty"`                 // settings of kube-scheduler
	MetricsServer     MetricsServer     `yaml:"metricsServer,omitempty" json:"metricsServer,omitempty"`         // settings of metrics-server
	// CloudControllerManager: settings of cloud-controller-manager and its simulated cloud (docs/reference/cloud.md)
	CloudControllerManager CloudControllerManager `yaml:"cloudControllerManager,omitempty" json:"cloudControllerManager,omitzero"`
	// FeatureGates: feature gates to turn on or off in every component that has them; a component's own flags take
	// precedence
	FeatureGates map[string]bool `yaml:"featureGates,omitempty" json:"featureGates,omitempty"`
	// NetworkFaults: "on" (connections to etcd members and metrics-server pass through proxies, so that faults can
	// delay or cut them; each exchange takes 100 microseconds longer) or "off"; default: on with several etcd members
	NetworkFaults string `yaml:"networkFaults,omitempty" json:"networkFaults,omitempty"`
	// Tracing: an OpenTelemetry receiver to which API servers and etcd send spans (docs/how-to/trace-a-slow-request.md)
	Tracing SpanExport `yaml:"tracing,omitempty" json:"tracing,omitzero"`
}

// SpanExport configures the export of spans by API servers and etcd.
type SpanExport struct {
	// Endpoint: loopback address of an OTLP/gRPC receiver without TLS, such as 127.0.0.1:4317; default: no tracing
	Endpoint string `yaml:"endpoint,omitempty" json:"endpoint,omitempty"`
	// Token: bearer token that API servers and etcd present to the receiver
	Token string `yaml:"token,omitempty" json:"token,omitempty"`
	// SamplingRatePerMillion: number of requests that API servers sample, per million requests without a trusted
	// traceparent; default 0
	SamplingRatePerMillion int `yaml:"samplingRatePerMillion,omitempty" json:"samplingRatePerMillion,omitempty"`
}

// Flags are command-line flags of a component, by name without dashes. Problems refuses flags that only Stormglass may
// set (certificates, listeners).
type Flags map[string]string

// Etcd configures the etcd members.
type Etcd struct {
	Members int `yaml:"members,omitempty" json:"members,omitempty" zero:"1"` // 1 (default), 3, 5 or 7
	// Topology: where the fault diskContention writes: "stacked" (on the file system of etcd's data; default) or
	// "external" (on another file system); it does not move etcd
	Topology string `yaml:"topology,omitempty" json:"topology,omitempty"`
	Flags    Flags  `yaml:"flags,omitempty" json:"flags,omitempty"` // command-line flags, by name without dashes
}

// APIServer configures kube-apiserver.
type APIServer struct {
	// Replicas: number of processes, default 1; several run behind a TCP load balancer that checks /readyz
	Replicas int `yaml:"replicas,omitempty" json:"replicas,omitempty" zero:"1"`
	// Descriptors: limit of open files per API server; default: the machine's limit
	Descriptors int `yaml:"descriptors,omitempty" json:"descriptors,omitempty"`
	// CPUs: maximum number of processors of each API server (GOMAXPROCS); default: all
	CPUs int `yaml:"cpus,omitempty" json:"cpus,omitempty" zero:"the machine's limit; leave it out to use the default"`
	// Audit: "off" (default) or "metadata" (logs each request of the load): docs/reference/breakdown.md
	Audit string `yaml:"audit,omitempty" json:"audit,omitempty"`
	// Authentication: how the load authenticates: "certificate" (default), "serviceAccount" (a bound token),
	// "bootstrapToken" (a Secret in kube-system), "oidc" (a token from oidc-issuer) or "webhook" (a token that
	// token-webhook reviews): docs/reference/services.md
	Authentication string `yaml:"authentication,omitempty" json:"authentication,omitempty"`
	// Authorization: "rbac" (default), "webhook" or "webhook-deny" (authorization-webhook, then RBAC:
	// docs/reference/services.md), or "abac" (a policy file that allows the load everything, then RBAC)
	Authorization string `yaml:"authorization,omitempty" json:"authorization,omitempty"`
	// Encryption: encryption of Secrets in etcd: "off" (default); "secretbox", "aesgcm" or "aescbc" with a key in the
	// plane's directory; or "kms" with kms-plugin
	Encryption string `yaml:"encryption,omitempty" json:"encryption,omitempty"`
	// AuditWebhook: "off" (default), "batch" (API servers send the load's audit events to audit-webhook in batches)
	// or "blocking" (API servers send each audit event before they answer its request)
	AuditWebhook string `yaml:"auditWebhook,omitempty" json:"auditWebhook,omitempty"`
	// ConversionWebhook: "off" (default) or "on": conversion-webhook converts custom resources whose definition has
	// strategy: Webhook and names no other webhook
	ConversionWebhook string `yaml:"conversionWebhook,omitempty" json:"conversionWebhook,omitempty"`
	Flags             Flags  `yaml:"flags,omitempty" json:"flags,omitempty"` // command-line flags, by name without dashes
}

// ControllerManager configures kube-controller-manager.
type ControllerManager struct {
	Replicas int `yaml:"replicas,omitempty" json:"replicas,omitempty" zero:"1"` // number of processes, default 1; one leads
	// QPS: --kube-api-qps of each controller's client, default 20; -1 means unlimited.
	QPS float64 `yaml:"qps,omitempty" json:"qps,omitempty" zero:"upstream's 20; leave it out to use the default, or write -1 for no limit"`
	// Burst: --kube-api-burst of each controller's client, default 30.
	Burst int   `yaml:"burst,omitempty" json:"burst,omitempty" zero:"upstream's 30; leave it out to use the default"`
	Flags Flags `yaml:"flags,omitempty" json:"flags,omitempty"` // command-line flags, by name without dashes
}

// Scheduler configures kube-scheduler.
type Scheduler struct {
	Replicas int `yaml:"replicas,omitempty" json:"replicas,omitempty" zero:"1"` // number of processes, default 1; one leads
	// QPS: clientConnection.qps, default 50; -1 means unlimited.
	QPS float64 `yaml:"qps,omitempty" json:"qps,omitempty" zero:"upstream's 50; leave it out to use the default, or write -1 for no limit"`
	// Burst: clientConnection.burst, default 100.
	Burst int `yaml:"burst,omitempty" json:"burst,omitempty" zero:"upstream's 100; leave it out to use the default"`
	// PercentageOfNodesToScore: 0 to 100; with 0 (default), the scheduler chooses a percentage by the number of nodes
	PercentageOfNodesToScore int `yaml:"percentageOfNodesToScore,omitempty" json:"percentageOfNodesToScore,omitempty"`
	// Extender: "off" (default), "ignorable" or "required": the scheduler calls scheduler-extender for each pod
	// (docs/reference/services.md)
	Extender string `yaml:"extender,omitempty" json:"extender,omitempty"`
	// Config: a KubeSchedulerConfiguration; the fields above take precedence
	Config map[string]any `yaml:"config,omitempty" json:"config,omitempty"`
	Flags  Flags          `yaml:"flags,omitempty" json:"flags,omitempty"` // command-line flags, by name without dashes
}

// MetricsServer configures metrics-server, which collects CPU and memory usage from kubelets and serves metrics.k8s.io.
type MetricsServer struct {
	Replicas int   `yaml:"replicas,omitempty" json:"replicas,omitempty"` // number of processes: 0 (default) or 1
	Flags    Flags `yaml:"flags,omitempty" json:"flags,omitempty"`       // command-line flags, by name without dashes
}

// CloudControllerManager configures cloud-controller-manager and its simulated cloud.
type CloudControllerManager struct {
	// number of processes, default 0 (no simulated cloud); one leads
	Replicas int `yaml:"replicas,omitempty" json:"replicas,omitempty"`
	// QPS: --kube-api-qps of each controller's client, default 20; -1 means unlimited.
	QPS float64 `yaml:"qps,omitempty" json:"qps,omitempty" zero:"upstream's 20; leave it out to use the default, or write -1 for no limit"`
	// Burst: --kube-api-burst of each controller's client, default 30.
	Burst int   `yaml:"burst,omitempty" json:"burst,omitempty" zero:"upstream's 30; leave it out to use the default"`
	Flags Flags `yaml:"flags,omitempty" json:"flags,omitempty"` // command-line flags, by name without dashes
	Cloud Cloud `yaml:"cloud,omitempty" json:"cloud,omitzero"`  // the simulated cloud; cloud-api serves its API
}

// Cloud configures the simulated cloud. By default it responds without delay and refuses nothing.
type Cloud struct {
	Delay  Duration `yaml:"delay,omitempty" json:"delay,omitempty"`   // delay of each response
	Jitter Duration `yaml:"jitter,omitempty" json:"jitter,omitempty"` // maximum random deviation from `delay`
	// Throttle: maximum requests per second, with bursts of the same size; further requests get status 429; default
	// unlimited
	Throttle         float64  `yaml:"throttle,omitempty" json:"throttle,omitempty" zero:"no limit; leave it out to use the default"`
	LoadBalancers    int      `yaml:"loadBalancers,omitempty" json:"loadBalancers,omitempty" zero:"no quota; leave it out to use the default"` // maximum number of load balancers, default unlimited
	LoadBalancerTime Duration `yaml:"loadBalancerTime,omitempty" json:"loadBalancerTime,omitempty"`                                            // time until a load balancer gets its address
	Routes           int      `yaml:"routes,omitempty" json:"routes,omitempty" zero:"no quota; leave it out to use the default"`               // maximum number of routes, default unlimited
}

// Duration is a length of time, written as "50ms" or "30s".
type Duration time.Duration

// D returns d as a time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String returns d in the format that UnmarshalText reads.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns d in the format that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration such as "50ms". It refuses a negative duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration; write it as 50ms or 30s", text)
	}
	*d = Duration(v)
	return nil
}

// The values of APIServer.Audit. Empty means AuditOff.
const (
	AuditOff      = "off"
	AuditMetadata = "metadata"
)

// AuditLogs is the directory of the audit logs in a plane's directory. Each API server has a
// file such as kube-apiserver-0.log, with one JSON event per line, and rotated files such as
// kube-apiserver-0-2006-01-02T15-04-05.000.log.
const AuditLogs = "audit"

// LoadUser is the user name with which the load authenticates on a bundled plane. API servers audit only this user's
// requests.
const LoadUser = "stormglass-loadgen"

// LoadGroup is the group of LoadUser.
const LoadGroup = "stormglass:loadgen"

// LoadUserName returns the user name that API servers see for the load.
func (c Config) LoadUserName() string {
	switch c.APIServer.Authentication {
	case AuthenticationServiceAccount:
		return "system:serviceaccount:default:" + LoadUser
	case AuthenticationBootstrapToken:
		return "system:bootstrap:" + BootstrapTokenID
	}
	return LoadUser
}

// BootstrapTokenID is the public part of the load's bootstrap token.
const BootstrapTokenID = "sgload"

// Audited reports whether API servers log the load's requests in an audit log.
func (c Config) Audited() bool { return c.APIServer.Audit == AuditMetadata }

// The values of APIServer.Encryption in addition to EncryptionProviders. Empty means EncryptionOff.
const (
	EncryptionOff = "off"
	EncryptionKMS = "kms"
)

// EncryptionProviders returns the values of APIServer.Encryption that are kube-apiserver providers with a local key.
func EncryptionProviders() []string { return []string{"secretbox", "aesgcm", "aescbc"} }

// HasExtender reports whether the scheduler calls scheduler-extender.
func (s Scheduler) HasExtender() bool {
	return s.Extender == ExtenderIgnorable || s.Extender == ExtenderRequired
}

// AsksAuthorization reports whether the API servers call authorization-webhook.
func (a APIServer) AsksAuthorization() bool {
	return a.Authorization == AuthorizationWebhook || a.Authorization == AuthorizationWebhookDeny
}

// SendsAudit reports whether the API servers send audit events to audit-webhook.
func (a APIServer) SendsAudit() bool {
	return a.AuditWebhook == AuditWebhookBatch || a.AuditWebhook == AuditWebhookBlocking
}

// Converts reports whether conversion-webhook converts custom resources.
func (a APIServer) Converts() bool { return a.ConversionWebhook == ConversionWebhookOn }

// BearsToken reports whether the load authenticates with a token.
func (a APIServer) BearsToken() bool {
	return a.Authentication != "" && a.Authentication != AuthenticationCertificate
}

// Encrypted reports whether Secrets are encrypted in etcd.
func (c Config) Encrypted() bool {
	return c.APIServer.Encryption != "" && c.APIServer.Encryption != EncryptionOff
}

// The values of APIServer.Authentication. Empty means AuthenticationCertificate.
const (
	AuthenticationCertificate    = "certificate"
	AuthenticationServiceAccount = "serviceAccount"
	AuthenticationBootstrapToken = "bootstrapToken"
	AuthenticationOIDC           = "oidc"
	AuthenticationWebhook        = "webhook"
)

// The values of APIServer.Authorization. Empty means AuthorizationRBAC.
const (
	AuthorizationRBAC        = "rbac"
	AuthorizationWebhook     = "webhook"
	AuthorizationWebhookDeny = "webhook-deny"
	AuthorizationABAC        = "abac"
)

// The values of APIServer.AuditWebhook. Empty means AuditWebhookOff.
const (
	AuditWebhookOff      = "off"
	AuditWebhookBatch    = "batch"
	AuditWebhookBlocking = "blocking"
)

// The values of APIServer.ConversionWebhook. Empty means ConversionWebhookOff.
const (
	ConversionWebhookOff = "off"
	ConversionWebhookOn  = "on"
)

// The values of Scheduler.Extender. Empty means ExtenderOff.
const (
	ExtenderOff       = "off"
	ExtenderIgnorable = "ignorable"
	ExtenderRequired  = "required"
)

// The values of Etcd.Topology. Empty means EtcdStacked.
const (
	EtcdStacked  = "stacked"
	EtcdExternal = "external"
)

// The values of Config.NetworkFaults. Empty means NetworkFaultsOn with several etcd members, otherwise
// NetworkFaultsOff.
const (
	NetworkFaultsOn  = "on"
	NetworkFaultsOff = "off"
)

// HasLinks reports whether connections to etcd members pass through proxies. Network faults delay and cut the
// connections in these proxies.
func (c Config) HasLinks() bool {
	switch c.NetworkFaults {
	case NetworkFaultsOn:
		return true
	case NetworkFaultsOff:
		return false
	}
	return c.Count(KindEtcd) > 1
}

// The bounds of a topology. Seven members are the maximum that etcd's documentation
// advises (FAQ, "What is maximum cluster size?"). An even number causes a warning.
// Stormglass considers more than 16 replicas or 1,024 processors a mistake.
const (
	maxMembers  = 7
	maxReplicas = 16
	maxCPUs     = 1024
)

// The bounds of apiServer.descriptors. An idle API server uses about a hundred descriptors. By default, the kernel
// allows no process a limit above 1,048,576.
const (
	minAPIServerDescriptors = 256
	maxAPIServerDescriptors = 1 << 20
)

func (c Config) topologyProblems() []Problem {
	var all []Problem
	count := func(path string, n, high int, hint string) {
		if n < 0 || n > high {
			all = append(all, Problem{path, fmt.Sprintf("%d is out of bounds", n), hint})
		}
	}
	count("etcd.members", c.Etcd.Members, maxMembers, fmt.Sprintf("use 1, 3, 5 or %d; each member stores all data", maxMembers))
	count("apiServer.replicas", c.APIServer.Replicas, maxReplicas, fmt.Sprintf("from 1 to %d", maxReplicas))
	count("controllerManager.replicas", c.ControllerManager.Replicas, maxReplicas, fmt.Sprintf("from 1 to %d; one replica is the leader, other replicas are on standby", maxReplicas))
	count("scheduler.replicas", c.Scheduler.Replicas, maxReplicas, fmt.Sprintf("from 1 to %d; one replica is the leader, other replicas are on standby", maxReplicas))
	count("metricsServer.replicas", c.MetricsServer.Replicas, 1, "0 or 1, because the Service of metrics-server has only one address")
	count("cloudControllerManager.replicas", c.CloudControllerManager.Replicas, maxReplicas, fmt.Sprintf("from 0 to %d; one replica is the leader, other replicas are on standby", maxReplicas))
	if n := c.APIServer.Descriptors; n != 0 && (n < minAPIServerDescriptors || n > maxAPIServerDescriptors) {
		all = append(all, Problem{"apiServer.descriptors", fmt.Sprintf("%d is out of bounds", n),
			fmt.Sprintf("from %d (an API server does not start with fewer) to %d; 0 means this machine's limit", minAPIServerDescriptors, maxAPIServerDescriptors)})
	}
	count("apiServer.cpus", c.APIServer.CPUs, maxCPUs, fmt.Sprintf("from 1 to %d", maxCPUs))
	switch c.Etcd.Topology {
	case "", EtcdStacked, EtcdExternal:
	default:
		all = append(all, Problem{"etcd.topology", fmt.Sprintf("unknown topology %q", c.Etcd.Topology), "stacked or external"})
	}
	switch c.NetworkFaults {
	case "", NetworkFaultsOn, NetworkFaultsOff:
	default:
		all = append(all, Problem{"networkFaults", fmt.Sprintf("%q is not a valid value", c.NetworkFaults), "on or off"})
	}
	return all
}

// Warnings returns a problem for each setting that works but is not advisable.
func (c Config) Warnings() []Problem {
	n := c.Count(KindEtcd)
	if n%2 != 0 {
		return nil
	}
	return []Problem{{
		Path: "etcd.members",
		Msg:  fmt.Sprintf("%d members have a quorum of %d and survive the loss of %d; %d members survive as many", n, n/2+1, (n-1)/2, n-1),
		Hint: fmt.Sprintf("use %d or %d members; %d survive the loss of %d", n-1, n+1, n+1, n/2),
	}}
}
