package control

import (
	"strings"
	"time"
)

// ClusterFile is the name of the file in a plane's directory that holds its Cluster.
const ClusterFile = "cluster.json"

// SocketFile is the name of the control socket in a plane's directory.
const SocketFile = "control.sock"

// Cluster describes a ready control plane. It is the content of cluster.json.
// Paths are absolute. It contains no secrets, but names files that do.
type Cluster struct {
	// Schema is "stormglass.cluster/v1".
	Schema string `json:"schema"`
	// Dir is the plane's directory.
	Dir string `json:"dir"`
	// Server is the API server's URL, https://127.0.0.1:PORT.
	Server string `json:"server"`
	// CAFile is the path of the CA certificate with which clients verify Server.
	CAFile string `json:"caFile"`
	// KubernetesVersion is the version of kube-apiserver-0, such as "v1.37.1". EtcdVersion is the version of
	// etcd-0, such as "3.7.0".
	KubernetesVersion string `json:"kubernetesVersion"`
	EtcdVersion       string `json:"etcdVersion"`
	// Kubeconfigs are the paths of the kubeconfigs by user: "admin" (system:masters,
	// for people) and "loadgen" (cluster-admin by RBAC, not system:masters, so that
	// priority and fairness applies to it).
	Kubeconfigs map[string]string `json:"kubeconfigs"`
	// NodeCA is the CA that signs client certificates of simulated kubelets (system:node:NAME, group system:nodes).
	NodeCA KeyPair `json:"nodeCA"`
	// Etcd holds the addresses and credentials with which etcdctl reaches the members.
	Etcd EtcdClient `json:"etcd"`
	// SupervisorPID is the ID of the process that starts and stops all other processes of the plane.
	SupervisorPID int `json:"supervisorPID"`
	// Socket is the path of the control socket, as in Holder.Socket.
	Socket string `json:"socket"`
	// Config is the plane's configuration.
	Config     Config      `json:"config"`
	Components []Component `json:"components"`
	// Observe is the URL of the query API that `up --observe` serves; empty without --observe.
	Observe string `json:"observe,omitempty"`
	// Deviations lists all settings that differ from upstream's defaults.
	Deviations []Deviation `json:"deviations"`
	// StartedAt is the time at which `up` was started, and ReadyAt the time at which the plane was ready.
	StartedAt time.Time `json:"startedAt"`
	ReadyAt   time.Time `json:"readyAt"`
}

// ConversionPath is the URL path at which conversion-webhook converts objects.
const ConversionPath = "/convert"

// ConversionWebhook returns the URL of conversion-webhook, or "" if the plane does not run conversion-webhook. Clients
// verify the webhook with CAFile.
func (c Cluster) ConversionWebhook() string {
	for _, component := range c.Components {
		if component.Kind == KindConversionWebhook {
			return strings.TrimSuffix(component.Scrape.URL, "/metrics") + ConversionPath
		}
	}
	return ""
}

// KeyPair holds the paths of a PEM certificate and its PEM private key.
type KeyPair struct {
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
}

// EtcdClient holds the addresses and credentials with which a client reaches etcd.
type EtcdClient struct {
	Endpoints []string `json:"endpoints"`
	CAFile    string   `json:"caFile"`
	KeyPair
}

// Component is one process of the plane.
type Component struct {
	// Name is unique in the plane: "etcd-0", "kube-apiserver-0".
	Name string `json:"name"`
	// Kind is the component's kind, such as "etcd" or "kube-apiserver".
	Kind string `json:"kind"`
	// Version is the version of a component that comes with a release, such as "v1.37.1", or "3.7.0" for etcd.
	Version string `json:"version,omitempty"`
	// PID is the component's process ID while the plane is up.
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Args are the flags with which the component was started.
	Args []string `json:"args"`
	// Log is the path of the file with the component's output.
	Log string `json:"log"`
	// Scrape is the component's metrics endpoint.
	Scrape ScrapeTarget `json:"scrape"`
	// ReadyAfter is the time from the component's start until the supervisor found the component ready.
	ReadyAfter time.Duration `json:"readyAfterNanoseconds"`
}

// ScrapeTarget is one /metrics endpoint, with the credentials to read it.
type ScrapeTarget struct {
	// Job is the component's kind, and Instance its name. Both become labels of its metrics.
	Job      string `json:"job" yaml:"job"`
	Instance string `json:"instance" yaml:"instance"`
	URL      string `json:"url" yaml:"url"`
	// CAFile is the path of the CA certificate that verifies the server. CertFile and KeyFile, or TokenFile,
	// authenticate the client. ServerName, if set, is the name to verify instead of the URL's host.
	CAFile     string `json:"caFile,omitempty" yaml:"caFile"`
	CertFile   string `json:"certFile,omitempty" yaml:"certFile"`
	KeyFile    string `json:"keyFile,omitempty" yaml:"keyFile"`
	TokenFile  string `json:"tokenFile,omitempty" yaml:"tokenFile"`
	ServerName string `json:"serverName,omitempty" yaml:"serverName"`
	// InsecureSkipVerify disables verification of the server, like insecure-skip-tls-verify in a kubeconfig. It is
	// false for bundled planes.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty" yaml:"insecureSkipVerify"`
	// ProxyURL is the URL of the HTTP or SOCKS proxy for the target. Empty means no proxy, even if the environment sets one.
	ProxyURL string `json:"proxyURL,omitempty" yaml:"proxyURL"`
}

// Deviation is one setting that differs from upstream's default.
type Deviation struct {
	Component string `json:"component"` // kind of the component
	Setting   string `json:"setting"`   // name of the flag or field
	Value     string `json:"value"`
	Default   string `json:"default"` // upstream's default, or "(unset)"
	Reason    string `json:"reason"`  // "set by the user", or the reason why Stormglass sets the value
}

// State is a state of a plane.
type State string

// A plane's states, in order. While the supervisor restores etcd, the state of a ready plane is Starting again.
const (
	Starting State = "starting"
	Ready    State = "ready"
	Stopping State = "stopping"
	Stopped  State = "stopped"
)

// Status is a plane's state at one moment.
type Status struct {
	// Schema is "stormglass.status/v1".
	Schema string `json:"schema"`
	Dir    string `json:"dir"`
	State  State  `json:"state"`
	// Since is the time at which the state began.
	Since time.Time `json:"since"`
	// Cause is the reason why the plane stopped or is stopping; "" before that.
	Cause         string            `json:"cause,omitempty"`
	SupervisorPID int               `json:"supervisorPID"`
	Components    []ComponentStatus `json:"components"`
	// Faults are the active faults.
	Faults []FaultStatus `json:"faults,omitempty"`
	// Cluster describes the plane. It is nil until the plane is ready.
	Cluster *Cluster `json:"cluster,omitempty"`
}

// ComponentStatus is the state of one process at one moment.
type ComponentStatus struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"`
	Version string    `json:"version,omitempty"` // version, as in Component.Version
	PID     int       `json:"pid"`
	Address string    `json:"address"`
	Log     string    `json:"log"`
	Started time.Time `json:"started"`
	// Ready reports whether the process has been ready at least once since it started.
	Ready      bool          `json:"ready"`
	ReadyAfter time.Duration `json:"readyAfterNanoseconds"`
	// Role is the component's role among its replicas: "leader" or "follower" for an etcd member, "leader" or "standby"
	// for a leader-elected component, "serving" or "out" for an API server behind the load balancer. "" means unknown.
	Role string `json:"role,omitempty"`
	// Etcd is the status of an etcd member.
	Etcd *EtcdStatus `json:"etcd,omitempty"`
	// Connections is the number of connections to an API server through the load balancer.
	Connections int `json:"connections,omitempty"`
	// Restarts is the number of restarts after faults, lease handovers and crashes.
	Restarts int `json:"restarts,omitempty"`
	// CPU is the user plus system time since the process started. RSS is the resident memory in bytes. Shared is the
	// part of RSS that the plane's processes share, because they run the same executable. All are zero if the system
	// does not provide them.
	CPU       time.Duration `json:"cpuNanoseconds"`
	RSS       int64         `json:"rssBytes"`
	Shared    int64         `json:"sharedBytes"`
	OpenFiles int           `json:"openFiles"`
	// Exit says how the process ended; "" while it runs.
	Exit string `json:"exit,omitempty"`
}

// EtcdStatus is the status that an etcd member reports.
type EtcdStatus struct {
	// Term is the Raft term, which increases with every election.
	Term int64 `json:"term"`
	// DBSize is the size of the member's database file, and DBInUse the part in use, in bytes.
	DBSize  int64 `json:"dbSizeBytes"`
	DBInUse int64 `json:"dbInUseBytes"`
	// Alarms are the raised alarms, such as "NOSPACE".
	Alarms []string `json:"alarms,omitempty"`
}

// The roles of a component among its replicas, in addition to RoleLeader and RoleFollower.
const (
	RoleStandby = "standby"
	RoleServing = "serving"
	RoleOut     = "out"
)

// StatusSchema and ClusterSchema are the schema versions of Status and Cluster.
const (
	StatusSchema  = "stormglass.status/v1"
	ClusterSchema = "stormglass.cluster/v1"
)

// StoppedFile is the name of the file in a stopped plane's directory that holds its last Status.
const StoppedFile = "stopped.json"
