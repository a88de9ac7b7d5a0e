package control

import (
	"strings"
	"time"
)

// ClusterFile is the name of the Cluster file in a plane's directory.
const ClusterFile = "cluster.json"

// SocketFile is the name of the control socket in a plane's directory.
const SocketFile = "control.sock"

// Cluster describes a ready control plane, in cluster.json.
// Paths are absolute; nothing in it is secret, but the files it names are.
type Cluster struct {
	// Schema is "stormglass.cluster/v1".
	Schema string `json:"schema"`
	// Dir is the plane's directory.
	Dir string `json:"dir"`
	// Server is the API server's URL, https://127.0.0.1:PORT.
	Server string `json:"server"`
	// CAFile verifies Server.
	CAFile string `json:"caFile"`
	// KubernetesVersion and EtcdVersion are those of kube-apiserver-0 and etcd-0, "v1.37.1", "3.7.0".
	KubernetesVersion string `json:"kubernetesVersion"`
	EtcdVersion       string `json:"etcdVersion"`
	// Kubeconfigs by user: "admin" (system:masters, for people), "loadgen"
	// (cluster-admin by RBAC, not system:masters: priority and fairness
	// applies to it).
	Kubeconfigs map[string]string `json:"kubeconfigs"`
	// NodeCA signs client certificates of simulated kubelets
	// (system:node:NAME, group system:nodes).
	NodeCA KeyPair `json:"nodeCA"`
	// Etcd is how etcdctl reaches the members.
	Etcd EtcdClient `json:"etcd"`
	// SupervisorPID is the process that started, and stops, all others.
	SupervisorPID int `json:"supervisorPID"`
	// Socket is the control socket's path, see Holder.
	Socket string `json:"socket"`
	// Config is the plane's configuration.
	Config     Config      `json:"config"`
	Components []Component `json:"components"`
	// Observe is the URL of the query API that `up --observe` serves, empty without.
	Observe string `json:"observe,omitempty"`
	// Deviations are all settings that differ from upstream's defaults.
	Deviations []Deviation `json:"deviations"`
	// StartedAt is when `up` began, ReadyAt when the plane was ready.
	StartedAt time.Time `json:"startedAt"`
	ReadyAt   time.Time `json:"readyAt"`
}

// ConversionPath is where conversion-webhook converts.
const ConversionPath = "/convert"

// ConversionWebhook is the URL of conversion-webhook, "" if the plane has none. CAFile verifies it.
func (c Cluster) ConversionWebhook() string {
	for _, component := range c.Components {
		if component.Kind == KindConversionWebhook {
			return strings.TrimSuffix(component.Scrape.URL, "/metrics") + ConversionPath
		}
	}
	return ""
}

// KeyPair names a PEM certificate and its PEM private key.
type KeyPair struct {
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
}

// EtcdClient is how a client reaches etcd.
type EtcdClient struct {
	Endpoints []string `json:"endpoints"`
	CAFile    string   `json:"caFile"`
	KeyPair
}

// Component is one process of the plane.
type Component struct {
	// Name is unique in the plane: "etcd-0", "kube-apiserver-0".
	Name string `json:"name"`
	// Kind is the program: "etcd", "kube-apiserver", "kube-scheduler",
	// "kube-controller-manager".
	Kind string `json:"kind"`
	// Version of a component that comes with a release: "v1.37.1", of etcd "3.7.0".
	Version string `json:"version,omitempty"`
	// PID of the process while the plane is up.
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Args are the flags it was started with.
	Args []string `json:"args"`
	// Log is the file of its output.
	Log string `json:"log"`
	// Scrape is where its metrics are.
	Scrape ScrapeTarget `json:"scrape"`
	// ReadyAfter is the time from its start until it was seen ready.
	ReadyAfter time.Duration `json:"readyAfterNanoseconds"`
}

// ScrapeTarget is one /metrics endpoint with the identity that may read it.
type ScrapeTarget struct {
	// Job is the component's kind, Instance its name; both become labels.
	Job      string `json:"job" yaml:"job"`
	Instance string `json:"instance" yaml:"instance"`
	URL      string `json:"url" yaml:"url"`
	// CAFile verifies the server; CertFile and KeyFile, or TokenFile, are the
	// client's. ServerName overrides the name that is verified, if set.
	CAFile     string `json:"caFile,omitempty" yaml:"caFile"`
	CertFile   string `json:"certFile,omitempty" yaml:"certFile"`
	KeyFile    string `json:"keyFile,omitempty" yaml:"keyFile"`
	TokenFile  string `json:"tokenFile,omitempty" yaml:"tokenFile"`
	ServerName string `json:"serverName,omitempty" yaml:"serverName"`
	// InsecureSkipVerify: the user has said not to verify the server, in a
	// kubeconfig's insecure-skip-tls-verify. Never set for a bundled plane.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty" yaml:"insecureSkipVerify"`
	// ProxyURL of the HTTP or SOCKS proxy on the way to it. Empty: none, whatever the environment says.
	ProxyURL string `json:"proxyURL,omitempty" yaml:"proxyURL"`
}

// Deviation is one setting that differs from upstream's default.
type Deviation struct {
	Component string `json:"component"` // kind
	Setting   string `json:"setting"`   // flag or field
	Value     string `json:"value"`
	Default   string `json:"default"` // upstream's, or "(unset)"
	Reason    string `json:"reason"`  // "set by the user", or why Stormglass sets it
}

// State is a stage of a plane's life.
type State string

// A plane's states, in the order in which it goes through them.
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
	// Since is when the state began.
	Since time.Time `json:"since"`
	// Cause is why the plane stopped or stops, "" while it does not.
	Cause         string            `json:"cause,omitempty"`
	SupervisorPID int               `json:"supervisorPID"`
	Components    []ComponentStatus `json:"components"`
	// Faults that are in force.
	Faults []FaultStatus `json:"faults,omitempty"`
	// Cluster is there from the moment the plane is ready.
	Cluster *Cluster `json:"cluster,omitempty"`
}

// ComponentStatus is one process at one moment.
type ComponentStatus struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"`
	Version string    `json:"version,omitempty"` // as in Component
	PID     int       `json:"pid"`
	Address string    `json:"address"`
	Log     string    `json:"log"`
	Started time.Time `json:"started"`
	// Ready is true if it was seen ready since it started.
	Ready      bool          `json:"ready"`
	ReadyAfter time.Duration `json:"readyAfterNanoseconds"`
	// Role is its role among its replicas, "" if unknown: of an etcd
	// member "leader" or "follower", of a leader-elected component "leader"
	// or "standby", of an API server behind the load balancer "serving" or "out".
	Role string `json:"role,omitempty"`
	// Etcd is a member's own status.
	Etcd *EtcdStatus `json:"etcd,omitempty"`
	// Connections lead to an API server through the load balancer.
	Connections int `json:"connections,omitempty"`
	// Restarts counts the starts after the first: by faults, handovers of a lease and crashes.
	Restarts int `json:"restarts,omitempty"`
	// CPU is user plus system time since its start; RSS is resident memory in
	// bytes, Shared the part of it that the plane's other processes share (they
	// run one executable). All are zero where the system does not tell.
	CPU       time.Duration `json:"cpuNanoseconds"`
	RSS       int64         `json:"rssBytes"`
	Shared    int64         `json:"sharedBytes"`
	OpenFiles int           `json:"openFiles"`
	// Exit is how it ended, "" while it lives.
	Exit string `json:"exit,omitempty"`
}

// EtcdStatus is an etcd member's own status.
type EtcdStatus struct {
	// Term of Raft: it goes up with every election.
	Term int64 `json:"term"`
	// DBSize is the size of its database file, DBInUse what of it is in use, in bytes.
	DBSize  int64 `json:"dbSizeBytes"`
	DBInUse int64 `json:"dbInUseBytes"`
	// Alarms that are raised, as "NOSPACE".
	Alarms []string `json:"alarms,omitempty"`
}

// The roles of a component among its equals, beside RoleLeader and RoleFollower.
const (
	RoleStandby = "standby"
	RoleServing = "serving"
	RoleOut     = "out"
)

// StatusSchema and ClusterSchema name the forms of Status and Cluster.
const (
	StatusSchema  = "stormglass.status/v1"
	ClusterSchema = "stormglass.cluster/v1"
)

// StoppedFile is the name of the last Status of a plane that has stopped, in its directory.
const StoppedFile = "stopped.json"
