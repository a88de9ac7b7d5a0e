package scenario

// Nodes are the simulated nodes, registered before the first phase.
type Nodes struct {
	Count int `yaml:"count,omitempty"` // default 0
	// Fidelity: "kubelet" (own connection and watches; the default) or "shared" (one
	// watch for all)
	Fidelity string `yaml:"fidelity,omitempty"`
	// KubeProxy: add a kube-proxy's connection and watches; with fidelity kubelet
	KubeProxy bool `yaml:"kubeProxy,omitempty"`
	// Events: post a kubelet's four Events for each pod; with fidelity kubelet
	Events bool        `yaml:"events,omitempty"`
	Zones  int         `yaml:"zones,omitempty" zero:"3"`  // default 3
	CPU    string      `yaml:"cpu,omitempty"`             // allocatable of each, default 8
	Memory string      `yaml:"memory,omitempty"`          // allocatable of each, default 32Gi
	Pods   int         `yaml:"pods,omitempty" zero:"110"` // that each can hold, default 110
	Shapes []NodeShape `yaml:"shapes,omitempty"`          // kinds of nodes, drawn by weight
	// LeaseRenew: default 10s; less than node-monitor-grace-period (50s)
	LeaseRenew Duration `yaml:"leaseRenew,omitempty" zero:"10s"`
	// LeaseDuration: default four times LeaseRenew; upstream ignores it
	LeaseDuration Duration `yaml:"leaseDuration,omitempty" zero:"four times leaseRenew"`
	StatusReport  Duration `yaml:"statusReport,omitempty" zero:"5m"` // interval of unchanged reports, default 5m
	// PodStart: from seeing a bound pod to ready containers, without images; default 0s
	PodStart     Spread `yaml:"podStart,omitempty"`
	ImagePull    Spread `yaml:"imagePull,omitempty"`                // of an image new to the node, one after another; default 0s
	RegisterRate Rate   `yaml:"registerRate,omitempty" zero:"50/s"` // default 50/s
}

// NodeShape is one kind of node.
type NodeShape struct {
	Name   string  `yaml:"name"`                                // the label node.kubernetes.io/instance-type
	Weight float64 `yaml:"weight,omitempty" zero:"1"`           // default 1
	CPU    string  `yaml:"cpu,omitempty"`                       // default that of Nodes
	Memory string  `yaml:"memory,omitempty"`                    // default that of Nodes
	Pods   int     `yaml:"pods,omitempty" zero:"that of nodes"` // default that of Nodes
}
