// Package control is the contract between the two programs: the configuration
// of a control plane (Config), the description of a running one (Cluster,
// Status), and the client of its control socket. It is light on purpose:
// loadgen imports it and nothing else of controlplane.
package control

// Config configures a bundled control plane: a scenario's `controlPlane`. The zero
// value is upstream's defaults, one of each component.
type Config struct {
	Etcd              Etcd              `yaml:"etcd,omitempty" json:"etcd,omitempty"`                           // the etcd members
	APIServer         APIServer         `yaml:"apiServer,omitempty" json:"apiServer,omitempty"`                 // kube-apiserver
	ControllerManager ControllerManager `yaml:"controllerManager,omitempty" json:"controllerManager,omitempty"` // kube-controller-manager
	Scheduler         Scheduler         `yaml:"scheduler,omitempty" json:"scheduler,omitempty"`                 // kube-scheduler
	// NetworkFaults: "on" (links between etcd members and to API servers lead through
	// proxies, so that faults can delay and cut them; 100 microseconds an exchange) or
	// "off"; default: on with several etcd members
	NetworkFaults string `yaml:"networkFaults,omitempty" json:"networkFaults,omitempty"`
}

// Flags are command-line flags of a component, by name without dashes. A flag
// that Stormglass itself sets for safety (certificates, listeners) is refused.
type Flags map[string]string

// Etcd configures the etcd members.
type Etcd struct {
	// Members: 1 (the default), 3, 5 or 7; an even number is taken with a warning.
	Members int `yaml:"members,omitempty" json:"members,omitempty" zero:"1"`
	// Topology: "stacked" (the default: a diskContention shares etcd's disk) or
	// "external" (it writes to another file system)
	Topology string `yaml:"topology,omitempty" json:"topology,omitempty"`
	Flags    Flags  `yaml:"flags,omitempty" json:"flags,omitempty"` // by name without dashes
}

// APIServer configures kube-apiserver.
type APIServer struct {
	// Replicas: behind a TCP load balancer that asks each for /readyz; default 1,
	// without a balancer.
	Replicas int `yaml:"replicas,omitempty" json:"replicas,omitempty" zero:"1"`
	// Descriptors: limit of open files of each, default the machine's.
	Descriptors int `yaml:"descriptors,omitempty" json:"descriptors,omitempty"`
	// Audit: "off" (the default) or "metadata": a line for each request of the load:
	// docs/reference/breakdown.md
	Audit string `yaml:"audit,omitempty" json:"audit,omitempty"`
	Flags Flags  `yaml:"flags,omitempty" json:"flags,omitempty"` // by name without dashes
}

// ControllerManager configures kube-controller-manager.
type ControllerManager struct {
	Replicas int `yaml:"replicas,omitempty" json:"replicas,omitempty" zero:"1"` // default 1; one leads
	// QPS: --kube-api-qps of each controller's client, default 20; -1: no limit.
	QPS float64 `yaml:"qps,omitempty" json:"qps,omitempty" zero:"upstream's 20; leave it out for that, or write -1 for no limit"`
	// Burst: --kube-api-burst, default 30.
	Burst int   `yaml:"burst,omitempty" json:"burst,omitempty" zero:"upstream's 30; leave it out for that"`
	Flags Flags `yaml:"flags,omitempty" json:"flags,omitempty"` // by name without dashes
}

// Scheduler configures kube-scheduler.
type Scheduler struct {
	Replicas int `yaml:"replicas,omitempty" json:"replicas,omitempty" zero:"1"` // default 1; one leads
	// QPS: clientConnection.qps, default 50; -1: no limit.
	QPS float64 `yaml:"qps,omitempty" json:"qps,omitempty" zero:"upstream's 50; leave it out for that, or write -1 for no limit"`
	// Burst: clientConnection.burst, default 100.
	Burst int `yaml:"burst,omitempty" json:"burst,omitempty" zero:"upstream's 100; leave it out for that"`
	// PercentageOfNodesToScore: 0 to 100; 0, the default, is adaptive.
	PercentageOfNodesToScore int `yaml:"percentageOfNodesToScore,omitempty" json:"percentageOfNodesToScore,omitempty"`
	// Config: a KubeSchedulerConfiguration, under the fields above
	Config map[string]any `yaml:"config,omitempty" json:"config,omitempty"`
	Flags  Flags          `yaml:"flags,omitempty" json:"flags,omitempty"` // by name without dashes
}

// The values of APIServer.Audit. Empty means AuditOff.
const (
	AuditOff      = "off"
	AuditMetadata = "metadata"
)

// AuditLog is the API server's audit log in a plane's directory, one JSON
// event a line. Files that were rotated stand beside it, as
// audit-2006-01-02T15-04-05.000.log.
const AuditLog = "audit/audit.log"

// LoadUser is the user name of the load's identity on a bundled plane, the
// only one whose requests are audited.
const LoadUser = "stormglass-loadgen"

// Audited reports whether the load's requests are in an audit log.
func (c Config) Audited() bool { return c.APIServer.Audit == AuditMetadata }

// auditFlags lists the flags that Audit sets and those that would disable it.
func auditFlags() []string {
	return []string{"audit-policy-file", "audit-log-path", "audit-log-maxbackup", "audit-log-maxage", "audit-log-format", "audit-log-version", "audit-log-compress"}
}
