// Package control is the contract between the two programs: the configuration
// of a control plane (Config), the description of a running one (Cluster,
// Status), and the client of its control socket. It is light on purpose:
// loadgen imports it and nothing else of controlplane.
package control

// Config configures a bundled control plane. The zero
// value is a usable plane: upstream's defaults, one etcd member and one API
// server. The same section stands in a scenario under `controlPlane`.
type Config struct {
	Etcd              Etcd              `yaml:"etcd,omitempty" json:"etcd,omitempty"`                           // the etcd members
	APIServer         APIServer         `yaml:"apiServer,omitempty" json:"apiServer,omitempty"`                 // kube-apiserver
	ControllerManager ControllerManager `yaml:"controllerManager,omitempty" json:"controllerManager,omitempty"` // kube-controller-manager
	Scheduler         Scheduler         `yaml:"scheduler,omitempty" json:"scheduler,omitempty"`                 // kube-scheduler
	// NetworkFaults is "on" (peers of etcd, and API servers and etcd, reach
	// each other through proxies, so that their links can be delayed and cut) or
	// "off". Default: on with several etcd members, else off. The proxies
	// cost each exchange some 100 microseconds: a named deviation.
	NetworkFaults string `yaml:"networkFaults,omitempty" json:"networkFaults,omitempty"`
}

// Flags are command-line flags of a component, by name without dashes. A flag
// that Stormglass itself sets for safety (certificates, listeners) is refused.
type Flags map[string]string

// Etcd configures the etcd members.
type Etcd struct {
	// Members: 1 (the default), 3, 5 or 7. An even number is taken with a warning: it
	// tolerates no more losses than one less.
	Members int `yaml:"members,omitempty" json:"members,omitempty" zero:"1"`
	// Topology is "stacked" (the default: etcd shares its disk with its
	// neighbours, so a diskContention hits it) or "external" (its disk is its
	// own: the neighbours write to another file system).
	Topology string `yaml:"topology,omitempty" json:"topology,omitempty"`
	// Flags of every member, by name without dashes.
	Flags Flags `yaml:"flags,omitempty" json:"flags,omitempty"`
}

// APIServer configures kube-apiserver.
type APIServer struct {
	// Replicas, all active, behind a TCP load balancer that asks each for
	// /readyz. Default 1, without a balancer.
	Replicas int `yaml:"replicas,omitempty" json:"replicas,omitempty" zero:"1"`
	// Descriptors is each API server's limit of open files. Zero: that of this
	// machine.
	Descriptors int `yaml:"descriptors,omitempty" json:"descriptors,omitempty"`
	// Audit is "off" (the default) or "metadata": a line of log for every
	// request of the load but watches, from which the server's own time of
	// each is known. The server writes it before the request ends, so it
	// costs CPU and some latency: a named deviation, never on by itself.
	Audit string `yaml:"audit,omitempty" json:"audit,omitempty"`
	// Flags of kube-apiserver, by name without dashes.
	Flags Flags `yaml:"flags,omitempty" json:"flags,omitempty"`
}

// ControllerManager configures kube-controller-manager.
type ControllerManager struct {
	// Replicas; one leads. Default 1.
	Replicas int `yaml:"replicas,omitempty" json:"replicas,omitempty" zero:"1"`
	// QPS is --kube-api-qps, in requests per second per controller's client; -1 is
	// no limit. Left out: upstream's default, 20.
	QPS float64 `yaml:"qps,omitempty" json:"qps,omitempty" zero:"upstream's 20; leave it out for that, or write -1 for no limit"`
	// Burst is --kube-api-burst, in requests. Left out: upstream's default, 30.
	Burst int `yaml:"burst,omitempty" json:"burst,omitempty" zero:"upstream's 30; leave it out for that"`
	// Flags of kube-controller-manager, by name without dashes.
	Flags Flags `yaml:"flags,omitempty" json:"flags,omitempty"`
}

// Scheduler configures kube-scheduler.
type Scheduler struct {
	// Replicas; one leads. Default 1.
	Replicas int `yaml:"replicas,omitempty" json:"replicas,omitempty" zero:"1"`
	// QPS is clientConnection.qps, in requests per second; -1 is no limit. Left
	// out: upstream's default, 50.
	QPS float64 `yaml:"qps,omitempty" json:"qps,omitempty" zero:"upstream's 50; leave it out for that, or write -1 for no limit"`
	// Burst is clientConnection.burst, in requests. Left out: upstream's
	// default, 100.
	Burst int `yaml:"burst,omitempty" json:"burst,omitempty" zero:"upstream's 100; leave it out for that"`
	// PercentageOfNodesToScore, 0 to 100. 0, upstream's default, is adaptive.
	PercentageOfNodesToScore int `yaml:"percentageOfNodesToScore,omitempty" json:"percentageOfNodesToScore,omitempty"`
	// Config is a whole KubeSchedulerConfiguration. The fields above and the
	// kubeconfig are laid over it.
	Config map[string]any `yaml:"config,omitempty" json:"config,omitempty"`
	// Flags of kube-scheduler, by name without dashes.
	Flags Flags `yaml:"flags,omitempty" json:"flags,omitempty"`
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

// auditFlags are what Audit sets, or what would keep it from working.
func auditFlags() []string {
	return []string{"audit-policy-file", "audit-log-path", "audit-log-maxbackup", "audit-log-maxage", "audit-log-format", "audit-log-version", "audit-log-compress"}
}
