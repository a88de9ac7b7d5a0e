// Package scenario defines the fields of a scenario file, loads and validates such files, and
// contains the catalogue of built-in scenarios. Loading is strict: an unknown field is an error.
// Each error names the file, line and field, and gives a hint. Loading does not find settings that
// are valid but cannot work; see loadgen.Check.
//
// Within an apiVersion, fields and kinds are only added, never renamed, removed or given
// another meaning. The same holds for Read, ReadStdin, Parse, Names, Source and the exported
// fields of Scenario. The other functions exist for the load generator and may change.
package scenario

import (
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/strictyaml"
)

// APIVersion and Kind of a scenario file.
const (
	APIVersion = "stormglass/v1alpha1"
	Kind       = "Scenario"
)

// Scenario is the content of a scenario file.
type Scenario struct {
	APIVersion   string         `yaml:"apiVersion"`              // always stormglass/v1alpha1
	Kind         string         `yaml:"kind"`                    // always Scenario
	Name         string         `yaml:"name"`                    // lower-case letters, digits and -, at most 40 characters
	Description  string         `yaml:"description,omitempty"`   // text to show in lists and reports
	Seed         int64          `yaml:"seed,omitempty" zero:"1"` // seed of all random choices, default 1
	ControlPlane control.Config `yaml:"controlPlane,omitempty"`  // the bundled control plane; not used on your own cluster
	Nodes        Nodes          `yaml:"nodes,omitempty"`         // simulated nodes
	Record       Record         `yaml:"record,omitempty"`        // how to record metrics
	Tracing      Tracing        `yaml:"tracing,omitempty"`       // which requests to trace
	// Setup: actions of kind "create" that run before other objects are created
	Setup []Action `yaml:"setup,omitempty"`
	// Objects: objects to create from templates after `setup` and before the first phase
	Objects     []Batch      `yaml:"objects,omitempty"`
	Transitions []Transition `yaml:"transitions,omitempty"` // state changes of objects to measure
	// NamespaceLabels: labels of the run's namespaces, such as pod-security.kubernetes.io/enforce: restricted
	NamespaceLabels map[string]string `yaml:"namespaceLabels,omitempty"`
	// Namespaces: groups of namespaces with fixed names, for `namespaceGroup`; the run refuses existing namespaces
	Namespaces []NamespaceGroup `yaml:"namespaces,omitempty"`
	Background []Load           `yaml:"background,omitempty"` // loads that run in every phase
	Phases     []Phase          `yaml:"phases"`               // phases, in the order in which they run
	// Teardown: actions on objects after the last phase, also if the run ended early
	Teardown []Action `yaml:"teardown,omitempty"`
	// MinAchieved: minimum share of its work that each load and action must do in each phase; default 95%; 0% turns off
	// the check
	MinAchieved *Bound    `yaml:"minAchieved,omitempty"`
	Gates       []Gate    `yaml:"gates,omitempty"`    // criteria for the run to pass
	Signals     []Signal  `yaml:"signals,omitempty"`  // metrics that a fault should move
	AbortOn     []Abort   `yaml:"abortOn,omitempty"`  // conditions that end the run early
	Variants    []Variant `yaml:"variants,omitempty"` // versions of the scenario with some fields changed
	Compare     []Figure  `yaml:"compare,omitempty"`  // metrics for the table of variants and for `loadgen ab`
	Capacity    *Capacity `yaml:"capacity,omitempty"` // search range of `loadgen capacity`
	Variant     string    `yaml:"variant,omitempty"`  // name of the variant; only a run writes this field

	doc *strictyaml.Document
	// overrides are the settings applied to the scenario file. original is the scenario without them; it is nil if
	// there are no overrides or if that scenario is invalid.
	overrides []string
	original  *Scenario
	// recorded is true if the scenario is from a finished run.
	recorded bool
	// variants holds the complete scenario of each element of Variants.
	variants []*Scenario
	// linksOn is true if networkFaults was turned on automatically. linksFor is then the path of the fault that needs
	// it. If that fault is in another variant, linksFor is controlPlane.networkFaults, and linksOf names the variant.
	linksOn           bool
	linksFor, linksOf string
}

// Record configures how metrics are recorded.
type Record struct {
	// Interval: time between scrapes, default 5s, at least 1s
	Interval Duration `yaml:"interval,omitempty" zero:"5s"`
	Drop     []string `yaml:"drop,omitempty"` // metric families not to record
}

// Tracing configures [distributed traces](../how-to/trace-a-slow-request.md).
type Tracing struct {
	Sample *Bound `yaml:"sample,omitempty"` // share of the requests to trace, such as 5%; default none
}

// Phase is one phase of a run. It ends after the time `for` or when the condition `until` holds; set one of them.
type Phase struct {
	Name  string   `yaml:"name"`                        // unique name of the phase
	For   Duration `yaml:"for,omitempty" zero:"no end"` // fixed length of the phase
	Until Until    `yaml:"until,omitempty"`             // condition that ends the phase
	// Within: maximum time to wait for `until`, required with `until`
	Within Duration `yaml:"within,omitempty" zero:"no bound"`
	// Of: workloads to wait for with `until: podsReady`; default all
	Of       []string  `yaml:"of,omitempty" zero:"all workloads; leave it out to use the default"`
	Actions  []Action  `yaml:"actions,omitempty"`  // changes to workloads and other objects, in file order
	Faults   []Fault   `yaml:"faults,omitempty"`   // faults during the phase
	Load     []Load    `yaml:"load,omitempty"`     // loads that run for the whole phase
	Profiles []Profile `yaml:"profiles,omitempty"` // pprof profiles to take during the phase
	Before   []Hook    `yaml:"before,omitempty"`   // commands that run in order before the phase starts
	After    []Hook    `yaml:"after,omitempty"`    // commands that run after the phase has ended
}

// Action changes workloads or other objects, by default at the start of a phase.
type Action struct {
	// Kind: for a workload: "deploy", "rollingUpdate", "scale", "delete" or "demand"; for the manifest in `object`:
	// "create"; for `templates`: "create" or "apply"; for the objects in `target`: "patch", "delete", "evict", "exec",
	// "scale" or "restart"; for work of the Go program that runs the scenario: "custom"
	Kind string `yaml:"kind"`
	// Name: name of the workload and its Service, or of the custom action; not used with `object`
	Name string `yaml:"name,omitempty"`
	// Workload: for a deploy, the kind of workload: "Deployment" (default), "StatefulSet", "DaemonSet", "Job" or
	// "CronJob"
	Workload string `yaml:"workload,omitempty"`
	Object   any    `yaml:"object,omitempty"` // for a create, the manifest of an object
	// Count: for a create, the number of objects; {i} in the manifest becomes 0, 1, ... For a workload, the number of
	// workloads NAME-0, NAME-1, ... Default one
	Count int `yaml:"count,omitempty" zero:"one; leave it out to use the default"`
	// Replicas: for deploy and scale, the number of pods; for a Job or CronJob, the number of pods of each Job
	Replicas int `yaml:"replicas,omitempty"`
	// Service: a deploy also creates a Service; a StatefulSet always has one
	Service bool `yaml:"service,omitempty"`
	// MaxSurge: how many more pods a Deployment's rollingUpdate may create: "25%" (default) or a number
	MaxSurge string `yaml:"maxSurge,omitempty"`
	// MaxUnavailable: how many pods may be unavailable during a rollingUpdate: "25%" (default of a Deployment; other kinds
	// default to 1) or a number
	MaxUnavailable string `yaml:"maxUnavailable,omitempty"`
	// CPU: CPU request of each pod, default 10m; for a demand, the total CPU usage of the Deployment's Ready pods
	CPU           string `yaml:"cpu,omitempty"`
	Memory        string `yaml:"memory,omitempty"`        // memory request of each pod, default 16Mi
	PriorityClass string `yaml:"priorityClass,omitempty"` // PriorityClass of a deploy's pods
	// SchedulerName: scheduler profile of a deploy's pods, from controlPlane.scheduler.config; default
	// default-scheduler
	SchedulerName string `yaml:"schedulerName,omitempty"`
	// Gang: minimum number of a deploy's pods that must be scheduled together. Requires the feature gate
	// GenericWorkload
	Gang    int `yaml:"gang,omitempty" zero:"each pod alone; leave it out to use the default"`
	Devices int `yaml:"devices,omitempty"` // number of devices that each pod of a deploy claims
	// EvictAfter: tolerationSeconds of a deploy's pods for not-ready and unreachable nodes, default 300s
	EvictAfter Duration  `yaml:"evictAfter,omitempty" zero:"upstream's 300s"`
	Autoscale  Autoscale `yaml:"autoscale,omitempty"` // HorizontalPodAutoscaler that scales a deploy by CPU
	// AntiAffinity: whether a deploy's pods avoid each other's nodes: "preferred" or "required"
	AntiAffinity string `yaml:"antiAffinity,omitempty"`
	// TopologySpread: topology spread constraints of a deploy's pods
	TopologySpread []TopologySpread `yaml:"topologySpread,omitempty"`
	// PodManagementPolicy: for a StatefulSet: "OrderedReady" (default: each pod starts when the previous one is Ready)
	// or "Parallel"
	PodManagementPolicy string   `yaml:"podManagementPolicy,omitempty"`
	RunFor              Duration `yaml:"runFor,omitempty"` // time after which each pod of a Job or CronJob succeeds
	// BackoffLimit: for a Job or CronJob, the number of failed or evicted pods above which a Job fails; default 6
	BackoffLimit int `yaml:"backoffLimit,omitempty" zero:"upstream's 6"`
	// Every: for a CronJob, the interval between Jobs: whole minutes that divide an hour, default 1m. For an action on
	// objects, the interval between repetitions until the phase ends
	Every Duration `yaml:"every,omitempty" zero:"1m"`
	// ConcurrencyPolicy: for a CronJob, what to do if a Job is due while the previous Job runs: "Allow" (default),
	// "Forbid" or "Replace"
	ConcurrencyPolicy string `yaml:"concurrencyPolicy,omitempty"`
	Batch             `yaml:",inline"`
	// Target: objects of the run to change, or pods in which to run a command
	Target Selection `yaml:"target,omitempty"`
	// Patch: patch for each object of `target`. Its strings are templates, which can use `vars` and the object's
	// {{.Name}}, {{.Namespace}} and {{.Index}} (from 0)
	Patch       any    `yaml:"patch,omitempty"`
	PatchType   string `yaml:"patchType,omitempty"`   // "merge" (default), "json", "strategic" or "apply"
	Subresource string `yaml:"subresource,omitempty"` // for a patch, the subresource to patch, such as "status"
	// Propagation: for a delete, the propagation policy: "Background" (default), "Foreground" or "Orphan"
	Propagation string `yaml:"propagation,omitempty"`
	// Collection: delete the objects with one deletecollection request for each namespace
	Collection bool     `yaml:"collection,omitempty"`
	Command    []string `yaml:"command,omitempty"` // for an exec, the command to run in the pod's first container
	// OnlyMissing: create only the objects of `templates` that do not exist yet
	OnlyMissing bool `yaml:"onlyMissing,omitempty"`
	// After: for an action on objects, the delay after the phase's start; actions without `after` run in file order
	After Duration `yaml:"after,omitempty"`
	// Rate: for an action on objects, the rate of requests; default: no limit, but at most 16 requests in flight
	Rate Rate `yaml:"rate,omitempty" zero:"as fast as answers come; leave it out to use the default"`
	// MinAchieved: minimum share of the work of an action on objects with `rate` or `every`; overrides the scenario's
	// minAchieved
	MinAchieved *Bound `yaml:"minAchieved,omitempty"`
}

// TopologySpread is one topology spread constraint of a deploy's pods.
type TopologySpread struct {
	Key     string `yaml:"key"`                        // node label, such as "topology.kubernetes.io/zone"
	MaxSkew int    `yaml:"maxSkew,omitempty" zero:"1"` // maximum difference in the number of pods between domains, default 1
	Soft    bool   `yaml:"soft,omitempty"`             // whenUnsatisfiable is ScheduleAnyway instead of DoNotSchedule
}

// Gate is one criterion for the run to pass.
type Gate struct {
	Name      string `yaml:"name"`                // unique name of the gate
	Objective string `yaml:"objective,omitempty"` // name of a built-in objective; set one of `objective`, `expr` and `alert`
	Expr      string `yaml:"expr,omitempty"`      // PromQL expression with one result (docs/reference/objectives.md)
	// Alert: name of a built-in alert (docs/reference/alerts.md), or of an alert in the rules of `loadgen gate --rules`
	Alert string `yaml:"alert,omitempty"`
	// Fires: true: `alert` must fire in one of the phases; false: `alert` must not fire
	Fires *bool  `yaml:"fires,omitempty"`
	Load  string `yaml:"load,omitempty"` // load that a client-side objective judges
	// Figure: for objective custom-figure, the value as MEASUREMENT/FIGURE, such as reconcile/p99
	Figure string `yaml:"figure,omitempty"`
	// Max: highest value that passes; set one of `max` and `min`, or neither with `alert`
	Max    *Bound   `yaml:"max,omitempty"`
	Min    *Bound   `yaml:"min,omitempty"`                                                     // lowest value that passes
	Signal string   `yaml:"signal,omitempty"`                                                  // signal that signal-moved or signal-returned judges
	Over   []string `yaml:"over,omitempty" zero:"all phases; leave it out to use the default"` // phases to judge, default all
	// Together: judge consecutive phases of `over` as one window of scraped data, instead of each phase by itself
	Together   bool   `yaml:"together,omitempty"`
	Transition string `yaml:"transition,omitempty"` // transition that transition-latency or transition-open judges
	// Quantile: quantile that transition-latency judges: 0.5, 0.9, 0.95, 0.99 (default), 0.999 or 1 (the longest)
	Quantile float64 `yaml:"quantile,omitempty" zero:"0.99"`
	// Variants: variants in which the gate is judged, default all
	Variants []string `yaml:"variants,omitempty" zero:"all variants; leave it out to use the default"`
}

// Nodes are the simulated nodes, registered before the first phase.
type Nodes struct {
	Count int `yaml:"count,omitempty"` // number of nodes
	Later int `yaml:"later,omitempty"` // how many of `count` register only when a nodeScaleUp fault begins
	// Fidelity: which of a kubelet's requests a node sends: "kubelet" (default), "lean" or "shared"
	// (docs/how-to/simulated-nodes.md)
	Fidelity string `yaml:"fidelity,omitempty"`
	// Identity: how nodes authenticate: "auto" (certificates if the cluster signs them, otherwise tokens; default),
	// "certificate" (a kubelet's client certificate) or "token" (of a separate ServiceAccount); not with fidelity
	// shared
	Identity string `yaml:"identity,omitempty"`
	// Version: release of the kubelets: "1.37", "1.36" or "1.35"; default: the release of the oldest API server at the
	// start
	Version string `yaml:"version,omitempty"`
	// KubeletAddress: address that your cluster's API servers can reach, such as 10.0.0.5:10250. The nodes serve a
	// kubelet's API on consecutive ports, starting with this port. Default: none on your cluster, the loopback address
	// on a bundled control plane
	KubeletAddress string `yaml:"kubeletAddress,omitempty"`
	// KubeProxy: each node also opens the connection and the watches of a kube-proxy; not with fidelity shared
	KubeProxy bool `yaml:"kubeProxy,omitempty"`
	// Events: with fidelity lean, post a kubelet's four Events for each pod; fidelity kubelet always posts them
	Events bool   `yaml:"events,omitempty"`
	Zones  int    `yaml:"zones,omitempty" zero:"3"`  // number of zones, default 3
	CPU    string `yaml:"cpu,omitempty"`             // allocatable CPU of each node, default 8
	Memory string `yaml:"memory,omitempty"`          // allocatable memory of each node, default 32Gi
	Pods   int    `yaml:"pods,omitempty" zero:"110"` // maximum number of pods on each node, default 110
	// Devices: number of devices on each node that pods can claim (ResourceSlices of driver gpu.stormglass.dev)
	Devices int `yaml:"devices,omitempty"`
	// ObjectSize: size of each Node object in protobuf, without managedFields, such as 15KiB; the node status lists
	// images to reach this size
	ObjectSize Bytes      `yaml:"objectSize,omitempty" zero:"no images"`
	Pools      []NodePool `yaml:"pools,omitempty" was:"shapes"` // groups of nodes with different properties
	// LeaseRenew: interval of lease renewals, default 10s; must be less than node-monitor-grace-period (50s)
	LeaseRenew Duration `yaml:"leaseRenew,omitempty" zero:"10s"`
	// LeaseDuration: leaseDurationSeconds of the node Leases, default four times `leaseRenew`; Kubernetes ignores it
	LeaseDuration Duration `yaml:"leaseDuration,omitempty" zero:"four times leaseRenew"`
	StatusReport  Duration `yaml:"statusReport,omitempty" zero:"5m"` // interval of status reports while nothing changes, default 5m
	// PodStart: time from when the node sees a pod until its containers are ready, without image pulls
	PodStart Spread `yaml:"podStart,omitempty"`
	// ImagePull: time to pull an image that the node does not have; a node pulls one image at a time
	ImagePull Spread `yaml:"imagePull,omitempty"`
	// PodLives: how containers behave; a pod gets the first entry whose `match` and `share` select it. Default:
	// containers keep running; with restartPolicy Never or OnFailure they complete after 10s
	PodLives []PodLife `yaml:"podLives,omitempty"`
	// MaxContainerRestartPeriod: longest back-off between container restarts, default 5m
	MaxContainerRestartPeriod Duration `yaml:"maxContainerRestartPeriod,omitempty" zero:"5m"`
	// RegisterRate: number of nodes to register per second, default 50/s
	RegisterRate Rate `yaml:"registerRate,omitempty" zero:"50/s"`
}

// NodesRelease returns the Kubernetes release of the simulated kubelets: nodes.version, or by default the oldest
// release of an API server.
func (s *Scenario) NodesRelease() control.Release {
	if r, ok := control.ReleaseOf(s.Nodes.Version); ok {
		return r
	}
	return s.ControlPlane.OldestAPIServer()
}

// Variant is the scenario with some fields changed, for example an incident's remedy.
type Variant struct {
	Name        string         `yaml:"name"`                  // unique name of the variant
	Description string         `yaml:"description,omitempty"` // one sentence about the variant
	Set         map[string]any `yaml:"set,omitempty"`         // field values by path; they override the scenario and --set
}

// Figure is one metric in the table that compares variants. It is written like a gate without a bound.
type Figure struct {
	Name      string `yaml:"name"`                // unique name of the metric
	Objective string `yaml:"objective,omitempty"` // name of a built-in objective; set one of `objective` and `expr`
	Expr      string `yaml:"expr,omitempty"`      // PromQL expression with one result (docs/reference/objectives.md)
	Figure    string `yaml:"figure,omitempty"`    // for objective custom-figure, the value as MEASUREMENT/FIGURE, such as reconcile/p99
	Unit      string `yaml:"unit,omitempty"`      // unit of `expr` or `figure`, as in a signal
	// Better: which values of `expr` or `figure` are better: "lower" (default) or "higher"
	Better string   `yaml:"better,omitempty"`
	Load   string   `yaml:"load,omitempty"`                                                    // load that a client-side objective judges
	Signal string   `yaml:"signal,omitempty"`                                                  // signal that signal-moved or signal-returned judges
	Over   []string `yaml:"over,omitempty" zero:"all phases; leave it out to use the default"` // phases to judge, default all
	// Together: judge consecutive phases of `over` as one window of scraped data, instead of each phase by itself
	Together   bool   `yaml:"together,omitempty"`
	Transition string `yaml:"transition,omitempty"` // transition that transition-latency or transition-open judges
	// Quantile: quantile that transition-latency judges: 0.5, 0.9, 0.95, 0.99 (default), 0.999 or 1 (the longest)
	Quantile float64 `yaml:"quantile,omitempty" zero:"0.99"`
	// Spread: standard deviation of ln(B/A) between equal control planes A and B, measured by `loadgen ab`; only
	// metrics with a `spread` may decide a comparison
	Spread *Bound `yaml:"spread,omitempty"`
}

// Capacity describes a search for the highest value of a scenario field at which all gates pass.
type Capacity struct {
	Field string `yaml:"field"` // path of the field, as for --set, such as background.NAME.rate or nodes.count
	From  Bound  `yaml:"from"`  // lowest value to try: a rate such as 50/s, or a number
	To    Bound  `yaml:"to"`    // highest value to try
}

// Unit returns PerSec if the field is a rate, otherwise Count.
func (c *Capacity) Unit() Unit {
	if c.From.Fits(PerSec) && c.To.Fits(PerSec) {
		return PerSec
	}
	return Count
}

// Signal is a metric that is stable in the `steady` phases, moves `under` the fault and returns `after` it.
type Signal struct {
	Name string `yaml:"name"` // unique name of the signal
	Expr string `yaml:"expr"` // PromQL expression with one result (docs/reference/recovery.md)
	// Unit: "seconds", "ratio", "bytes", "count", "per second" or "per hour"; default: a number without a unit
	Unit   string   `yaml:"unit,omitempty"`
	Steady []string `yaml:"steady"` // phases without the fault, to measure the noise of the metric
	Under  []string `yaml:"under"`  // phases with the fault
	// After: phases after the fault; the signal must return before they end
	After []string `yaml:"after,omitempty"`
}
