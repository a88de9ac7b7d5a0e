package scenario

// Nodes are the simulated nodes, registered before the first phase.
type Nodes struct {
	// Count of nodes. Zero means none.
	Count int `yaml:"count,omitempty"`
	// Fidelity is "kubelet" (each node has its own connection and holds the
	// watches a kubelet holds; the default) or "shared" (one watch for all).
	Fidelity string `yaml:"fidelity,omitempty"`
	// KubeProxy adds what a kube-proxy on each node holds: watches of services,
	// endpointslices and its node, on a connection of its own. With fidelity kubelet.
	KubeProxy bool `yaml:"kubeProxy,omitempty"`
	// Events makes each node post what a kubelet posts of its pods: four Events
	// for each, nearly half of its requests. A rollout on 500 nodes is bound by
	// them where the control plane has two cores. With fidelity kubelet. Default false.
	Events bool `yaml:"events,omitempty"`
	// Zones the nodes are spread over (topology.kubernetes.io/zone). Default 3.
	Zones int `yaml:"zones,omitempty" zero:"3"`
	// CPU is each node's allocatable CPU, as a Kubernetes quantity. Default 8.
	CPU string `yaml:"cpu,omitempty"`
	// Memory is each node's allocatable memory, as a Kubernetes quantity. Default 32Gi.
	Memory string `yaml:"memory,omitempty"`
	// Pods each node can hold. Default 110.
	Pods int `yaml:"pods,omitempty" zero:"110"`
	// Shapes are kinds of nodes, dealt out by weight, instead of CPU, Memory
	// and Pods, which are the defaults of theirs.
	Shapes []NodeShape `yaml:"shapes,omitempty"`
	// LeaseRenew is the interval of Lease renewals, less than the controller
	// manager's node-monitor-grace-period (50s). Default 10s, a kubelet's.
	LeaseRenew Duration `yaml:"leaseRenew,omitempty" zero:"10s"`
	// LeaseDuration is written into the Lease's spec. Default four times
	// LeaseRenew, as a kubelet's. The controller manager waits for
	// node-monitor-grace-period (50s) whatever it says.
	LeaseDuration Duration `yaml:"leaseDuration,omitempty" zero:"four times leaseRenew"`
	// StatusReport is the interval of unchanged node status reports. Default
	// 5m, a kubelet's nodeStatusReportFrequency.
	StatusReport Duration `yaml:"statusReport,omitempty" zero:"5m"`
	// PodStart is the simulated time from seeing a bound pod to its
	// containers being ready, images apart. Default 0s: what is measured is the control plane.
	PodStart Spread `yaml:"podStart,omitempty"`
	// ImagePull is the time to pull an image that the node has not pulled yet;
	// pulls of one node wait for each other, as a kubelet's do. Default 0s.
	ImagePull Spread `yaml:"imagePull,omitempty"`
	// RegisterRate is how many nodes begin registration per second. Default 50/s.
	RegisterRate Rate `yaml:"registerRate,omitempty" zero:"50/s"`
}

// NodeShape is one kind of node.
type NodeShape struct {
	// Name of the kind: the label node.kubernetes.io/instance-type.
	Name   string  `yaml:"name"`
	Weight float64 `yaml:"weight,omitempty" zero:"1"`           // among the shapes. Default 1
	CPU    string  `yaml:"cpu,omitempty"`                       // allocatable; default that of nodes
	Memory string  `yaml:"memory,omitempty"`                    // allocatable; default that of nodes
	Pods   int     `yaml:"pods,omitempty" zero:"that of nodes"` // it can hold; default that of nodes
}
