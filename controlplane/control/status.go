package control

import "time"

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
	// Restarts counts the starts after the first: the doing of faults.
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
	// DBSize is the size of its database file, DBInUse what of it is in use, in
	// bytes.
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

// StoppedFile is the name of the last Status of a plane that has stopped, in
// its directory.
const StoppedFile = "stopped.json"
