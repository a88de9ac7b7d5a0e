package control

import "time"

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
	// KubernetesVersion and EtcdVersion are the components' own, "v1.37.1", "3.7.0".
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
	// Observe is the URL of the query API that `up --observe` serves, empty
	// without.
	Observe string `json:"observe,omitempty"`
	// Deviations are all settings that differ from upstream's defaults.
	Deviations []Deviation `json:"deviations"`
	// StartedAt is when `up` began, ReadyAt when the plane was ready.
	StartedAt time.Time `json:"startedAt"`
	ReadyAt   time.Time `json:"readyAt"`
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
	Job      string `json:"job"`
	Instance string `json:"instance"`
	URL      string `json:"url"`
	// CAFile verifies the server; CertFile and KeyFile, or TokenFile, are the
	// client's. ServerName overrides the name that is verified, if set.
	CAFile     string `json:"caFile,omitempty"`
	CertFile   string `json:"certFile,omitempty"`
	KeyFile    string `json:"keyFile,omitempty"`
	TokenFile  string `json:"tokenFile,omitempty"`
	ServerName string `json:"serverName,omitempty"`
	// InsecureSkipVerify: the user has said not to verify the server, in a
	// kubeconfig's insecure-skip-tls-verify. Never set for a bundled plane.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// Deviation is one setting that differs from upstream's default.
type Deviation struct {
	Component string `json:"component"` // the component's kind
	Setting   string `json:"setting"`   // flag or field
	Value     string `json:"value"`     // what it was set to
	// Default is upstream's value, "(unset)" where there is none.
	Default string `json:"default"`
	// Reason is "set by the user" or why Stormglass sets it.
	Reason string `json:"reason"`
}
