// Package scenario is the schema of a scenario file, its strict loading
// (errors name file, line, field and a hint), its validation, and the
// built-in catalogue.
//
// Within an apiVersion fields and kinds are added, and none is renamed, removed or given
// another meaning. Read, ReadStdin, Parse, Names, Source and Scenario's exported fields
// are stable in the same way; the other functions serve the load generator and may
// change.
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

// Scenario is one run: control plane, nodes, phases, gates.
type Scenario struct {
	APIVersion  string `yaml:"apiVersion"`              // stormglass/v1alpha1
	Kind        string `yaml:"kind"`                    // Scenario
	Name        string `yaml:"name"`                    // Name: lower-case letters, digits and -, at most 40
	Description string `yaml:"description,omitempty"`   // for lists and reports
	Seed        int64  `yaml:"seed,omitempty" zero:"1"` // of everything random, default 1
	// ControlPlane: a user's cluster is compared with it
	ControlPlane control.Config `yaml:"controlPlane,omitempty"`
	Nodes        Nodes          `yaml:"nodes,omitempty"`  // simulated ones
	Record       Record         `yaml:"record,omitempty"` // of metrics
	// Setup: actions "create" before loads make their objects, as policies that are to be in
	// force throughout; custom resources are served when it is over
	Setup []Action `yaml:"setup,omitempty"`
	// Objects: made from templates before the first phase, after those of Setup; definitions of
	// custom resources first
	Objects []Batch `yaml:"objects,omitempty"`
	// Transitions: latencies of objects from one state to another, for the objectives
	// transition-latency and transition-open
	Transitions []Transition `yaml:"transitions,omitempty"`
	// NamespaceLabels: of the run's namespaces, as pod-security.kubernetes.io/enforce: restricted
	NamespaceLabels map[string]string `yaml:"namespaceLabels,omitempty"`
	Background      []Load            `yaml:"background,omitempty"` // in every phase
	Phases          []Phase           `yaml:"phases"`               // in this order
	// Teardown: actions on objects after the last phase, in this order, each whatever became of those before
	// it; also when the run ends early
	Teardown []Action `yaml:"teardown,omitempty"`
	// MinAchieved: of what loads and actions are asked in a phase, the share below which the run does not
	// pass; default 95%; 0%: it is not judged
	MinAchieved *Bound    `yaml:"minAchieved,omitempty"`
	Gates       []Gate    `yaml:"gates,omitempty"`    // all have to pass
	Signals     []Signal  `yaml:"signals,omitempty"`  // metrics by which the incident shows
	AbortOn     []Abort   `yaml:"abortOn,omitempty"`  // conditions that end the run early
	Variants    []Variant `yaml:"variants,omitempty"` // the scenario with fields set otherwise
	Compare     []Figure  `yaml:"compare,omitempty"`  // rows of the table of variants
	Capacity    *Capacity `yaml:"capacity,omitempty"` // what `loadgen capacity` searches
	Variant     string    `yaml:"variant,omitempty"`  // set by a run

	doc *strictyaml.Document
	// overrides were laid over the file, and original is the scenario without
	// them: nil if there are none, or it is not valid.
	overrides []string
	original  *Scenario
	// recorded: it is of a run that is over.
	recorded bool
	// variants are the scenarios of Variants.
	variants []*Scenario
	// linksOn: networkFaults was turned on, for the fault at the path linksFor, or
	// because another variant has such a fault (linksOf).
	linksOn           bool
	linksFor, linksOf string
}

// Record says how metrics are recorded.
type Record struct {
	// Interval: between scrapes, default 5s, at least 1s
	Interval Duration `yaml:"interval,omitempty" zero:"5s"`
	Drop     []string `yaml:"drop,omitempty"` // metric families not to record
}

// Phase ends after For, or when Until holds, at latest after Within.
type Phase struct {
	Name   string   `yaml:"name"`                             // unique
	For    Duration `yaml:"for,omitempty" zero:"no end"`      // fixed length; one of For and Until
	Until  Until    `yaml:"until,omitempty"`                  // a condition (above)
	Within Duration `yaml:"within,omitempty" zero:"no bound"` // bound of Until, required with it
	// Of: workloads whose pods podsReady awaits, default all
	Of      []string `yaml:"of,omitempty" zero:"all workloads; leave it out for that"`
	Actions []Action `yaml:"actions,omitempty"` // at the start, in this order
	Faults  []Fault  `yaml:"faults,omitempty"`  // each begins at its time
	Load    []Load   `yaml:"load,omitempty"`    // as long as the phase
	// Profiles: of components, by pprof, kept with the run
	Profiles []Profile `yaml:"profiles,omitempty"`
	// Before: commands on the generator's machine, one after another, before the phase's start is stamped
	Before []Hook `yaml:"before,omitempty"`
	After  []Hook `yaml:"after,omitempty"` // commands once its end is stamped
}

// Action changes objects at the start of a phase.
type Action struct {
	// Kind: "deploy", "rollingUpdate", "scale", "delete" or "demand" of a workload, "create" of
	// an Object, or, of objects of any resource, "create" or "apply" of Templates and "patch",
	// "delete", "evict", "exec", "scale" or "restart" of a Target; or "custom" (done by the Go
	// program that runs the scenario)
	Kind string `yaml:"kind"`
	// Name: of the workload (and its Service), or of the custom action; an Object has its own
	Name string `yaml:"name,omitempty"`
	// Workload: kind of a deploy's, "Deployment" (the default), "StatefulSet", "DaemonSet", "Job"
	// or "CronJob" (above)
	Workload string `yaml:"workload,omitempty"`
	// Object: manifest of a cluster's object (above), removed after the run. One of that name
	// that the cluster has is not replaced
	Object any `yaml:"object,omitempty"`
	// Count: so many objects of a create, with {i} in the manifest replaced by 0, 1, ...; or so
	// many workloads, NAME-0, NAME-1, ..., in all actions of the name; default one
	Count int `yaml:"count,omitempty" zero:"one; leave it out for that"`
	// Replicas: of deploy and scale; of a Job, and of each of a CronJob, so many pods at once,
	// which must all succeed
	Replicas int  `yaml:"replicas,omitempty"`
	Service  bool `yaml:"service,omitempty"` // deploy also makes a Service; a StatefulSet has one
	// MaxSurge: of a Deployment's rollingUpdate, "25%" (the default) or a number
	MaxSurge string `yaml:"maxSurge,omitempty"`
	// MaxUnavailable: of a rollingUpdate, "25%" (the default of a Deployment; of the others 1) or a
	// number
	MaxUnavailable string `yaml:"maxUnavailable,omitempty"`
	// CPU: request of each pod, default 10m; of a demand, what the Deployment's Ready pods use
	// together
	CPU    string `yaml:"cpu,omitempty"`
	Memory string `yaml:"memory,omitempty"` // request of each pod, default 16Mi
	// PriorityClass: of a deploy's pods, one that was created before or upstream's; default none
	PriorityClass string `yaml:"priorityClass,omitempty"`
	// SchedulerName: of a deploy's pods, a profile of controlPlane.scheduler.config; default
	// default-scheduler
	SchedulerName string `yaml:"schedulerName,omitempty"`
	// Gang: least number of a deploy's pods that are placed together, or none of them, by a
	// PodGroup of its name; default: each alone. It needs the feature gate GenericWorkload
	Gang int `yaml:"gang,omitempty" zero:"each pod alone; leave it out for that"`
	// Devices: that each of a deploy's pods claims, by a ResourceClaimTemplate of its name; default
	// none
	Devices int `yaml:"devices,omitempty"`
	// EvictAfter: a deploy's tolerationSeconds of not-ready and unreachable nodes, default 300s
	EvictAfter Duration `yaml:"evictAfter,omitempty" zero:"upstream's 300s"`
	// Autoscale: a deploy's HorizontalPodAutoscaler, by CPU; default none
	Autoscale Autoscale `yaml:"autoscale,omitempty"`
	// AntiAffinity: of a deploy's pods by node: "preferred", "required"; default none
	AntiAffinity string `yaml:"antiAffinity,omitempty"`
	// TopologySpread: of a deploy's pods; default: the scheduler's
	TopologySpread []TopologySpread `yaml:"topologySpread,omitempty"`
	// PodManagementPolicy: of a StatefulSet, "OrderedReady" (the default: each pod when the one
	// before is Ready) or "Parallel"
	PodManagementPolicy string `yaml:"podManagementPolicy,omitempty"`
	// RunFor: after it a pod of a Job or CronJob succeeds
	RunFor Duration `yaml:"runFor,omitempty"`
	// BackoffLimit: of a Job or CronJob: with more pods failed or evicted the Job fails; default 6
	BackoffLimit int `yaml:"backoffLimit,omitempty" zero:"upstream's 6"`
	// Every: from one run of a CronJob to the next, whole minutes that divide an hour, default 1m;
	// of an action on objects, from one time to the next, from After to the end of the phase,
	// default once
	Every Duration `yaml:"every,omitempty" zero:"1m"`
	// ConcurrencyPolicy: of a CronJob, "Allow" (the default), "Forbid" or "Replace"
	ConcurrencyPolicy string `yaml:"concurrencyPolicy,omitempty"`
	Batch             `yaml:",inline"`
	// Target: objects of the run that are patched, deleted, evicted, scaled or restarted, or pods
	// in which a command is run
	Target Selection `yaml:"target,omitempty"`
	// Patch: of each of the Target, whose texts are templates with {{.Name}}, {{.Namespace}},
	// {{.Index}} (from 0) and Vars
	Patch any `yaml:"patch,omitempty"`
	// PatchType: "merge" (the default), "json", "strategic" or "apply"
	PatchType   string `yaml:"patchType,omitempty"`
	Subresource string `yaml:"subresource,omitempty"` // of a patch, as "status"
	// Propagation: of a delete, "Background" (the default), "Foreground" or "Orphan"
	Propagation string `yaml:"propagation,omitempty"`
	// Collection: delete by one request in each namespace
	Collection bool     `yaml:"collection,omitempty"`
	Command    []string `yaml:"command,omitempty"` // of an exec, in the first container
	// OnlyMissing: create the objects of Templates that are not there
	OnlyMissing bool `yaml:"onlyMissing,omitempty"`
	// After: of an action on objects, from the phase's start; default at once, in file order
	After Duration `yaml:"after,omitempty"`
	// Rate: of requests on objects; default as fast as answers come, 16 at a time
	Rate Rate `yaml:"rate,omitempty" zero:"as fast as answers come; leave it out for that"`
	// MinAchieved: of an action on objects with Rate or Every, in place of the scenario's
	MinAchieved *Bound `yaml:"minAchieved,omitempty"`
}

// TopologySpread is one spread constraint of a deploy's pods.
type TopologySpread struct {
	Key     string `yaml:"key"`                        // node label, as "topology.kubernetes.io/zone"
	MaxSkew int    `yaml:"maxSkew,omitempty" zero:"1"` // in pods, default 1
	Soft    bool   `yaml:"soft,omitempty"`             // ScheduleAnyway; default DoNotSchedule
}

// Gate is one condition for the run to pass.
type Gate struct {
	// Name: unique
	Name      string `yaml:"name"`
	Objective string `yaml:"objective,omitempty"` // built-in; one of Objective, Expr and Alert
	// Expr: PromQL with one result (docs/reference/objectives.md)
	Expr string `yaml:"expr,omitempty"`
	// Alert: one of docs/reference/alerts.md, or of `loadgen gate --rules`
	Alert string `yaml:"alert,omitempty"`
	// Fires: whether Alert must fire in one of the phases, or must not
	Fires *bool  `yaml:"fires,omitempty"`
	Load  string `yaml:"load,omitempty"` // whose client-side objective is judged
	// Figure: of custom-figure, MEASUREMENT/FIGURE, as reconcile/p99
	Figure string `yaml:"figure,omitempty"`
	// Max: highest value that passes; one of Max and Min, but for an Alert
	Max    *Bound   `yaml:"max,omitempty"`
	Min    *Bound   `yaml:"min,omitempty"`                                           // lowest value that passes
	Signal string   `yaml:"signal,omitempty"`                                        // of signal-moved and signal-returned
	Over   []string `yaml:"over,omitempty" zero:"all phases; leave it out for that"` // phases, default all
	// Together: consecutive phases of Over are one window of what is scraped; default each is one
	Together bool `yaml:"together,omitempty"`
	// Transition: of transition-latency and transition-open
	Transition string `yaml:"transition,omitempty"`
	// Quantile: of transition-latency, 0.5, 0.9, 0.95, 0.99 (the default), 0.999 or 1 (the longest)
	Quantile float64 `yaml:"quantile,omitempty" zero:"0.99"`
	// Variants: in which it is judged, default all.
	Variants []string `yaml:"variants,omitempty" zero:"all variants; leave it out for that"`
}

// Nodes are the simulated nodes, registered before the first phase.
type Nodes struct {
	Count int `yaml:"count,omitempty"` // default 0
	Later int `yaml:"later,omitempty"` // of Count, registered by a nodeScaleUp; default 0
	// Fidelity: "kubelet" (every request of a real one, by its own connection; the default),
	// "lean" (the same connection and watches, a third of the requests of a pod's life) or
	// "shared" (one watch for all)
	Fidelity string `yaml:"fidelity,omitempty"`
	// Identity: "certificate" (each node has a kubelet's client certificate), "token" (a token of a
	// ServiceAccount of its own) or "auto" (certificates if the cluster signs them, else tokens;
	// the default); not with fidelity shared
	Identity string `yaml:"identity,omitempty"`
	// Version: of the kubelet that each is, "1.37", "1.36" or "1.35"; default that of the oldest API server at the start
	Version string `yaml:"version,omitempty"`
	// KubeletAddress: an address of this machine that your cluster's API server reaches, as
	// 10.0.0.5:10250: each node serves a kubelet's API there, at a port of its own from that
	// one on. Default: none; on a bundled plane the loopback device
	KubeletAddress string `yaml:"kubeletAddress,omitempty"`
	// KubeProxy: add a kube-proxy's connection and watches; not with fidelity shared
	KubeProxy bool `yaml:"kubeProxy,omitempty"`
	// Events: post a kubelet's four Events for each pod with fidelity lean; kubelet always does
	Events bool   `yaml:"events,omitempty"`
	Zones  int    `yaml:"zones,omitempty" zero:"3"`  // default 3
	CPU    string `yaml:"cpu,omitempty"`             // allocatable of each, default 8
	Memory string `yaml:"memory,omitempty"`          // allocatable of each, default 32Gi
	Pods   int    `yaml:"pods,omitempty" zero:"110"` // that each can hold, default 110
	// Devices: of each, which pods claim, in a ResourceSlice of driver gpu.stormglass.dev; default none
	Devices int         `yaml:"devices,omitempty"`
	Shapes  []NodeShape `yaml:"shapes,omitempty"` // kinds of nodes, drawn by weight
	// LeaseRenew: default 10s; less than node-monitor-grace-period (50s)
	LeaseRenew Duration `yaml:"leaseRenew,omitempty" zero:"10s"`
	// LeaseDuration: default four times LeaseRenew; upstream ignores it
	LeaseDuration Duration `yaml:"leaseDuration,omitempty" zero:"four times leaseRenew"`
	StatusReport  Duration `yaml:"statusReport,omitempty" zero:"5m"` // interval of unchanged reports, default 5m
	// PodStart: from seeing a bound pod to ready containers, without images; default 0s
	PodStart  Spread `yaml:"podStart,omitempty"`
	ImagePull Spread `yaml:"imagePull,omitempty"` // of an image new to the node, one after another; default 0s
	// PodLives: what happens to pods' containers: each pod has the first that matches and is
	// drawn; default: they run on, and those of Jobs complete after 10s
	PodLives []PodLife `yaml:"podLives,omitempty"`
	// MaxContainerRestartPeriod: the longest back-off of containers' restarts, default 5m
	MaxContainerRestartPeriod Duration `yaml:"maxContainerRestartPeriod,omitempty" zero:"5m"`
	RegisterRate              Rate     `yaml:"registerRate,omitempty" zero:"50/s"` // default 50/s
}

// NodesRelease is the release of the simulated kubelets.
func (s *Scenario) NodesRelease() control.Release {
	if r, ok := control.ReleaseOf(s.Nodes.Version); ok {
		return r
	}
	return s.ControlPlane.OldestAPIServer()
}

// NodeShape is one kind of node.
type NodeShape struct {
	Name   string  `yaml:"name"`                                // the label node.kubernetes.io/instance-type
	Weight float64 `yaml:"weight,omitempty" zero:"1"`           // default 1
	CPU    string  `yaml:"cpu,omitempty"`                       // default that of Nodes
	Memory string  `yaml:"memory,omitempty"`                    // default that of Nodes
	Pods   int     `yaml:"pods,omitempty" zero:"that of nodes"` // default that of Nodes
	// Devices: default that of Nodes
	Devices int `yaml:"devices,omitempty" zero:"that of nodes"`
}

// Variant is the scenario with some fields set otherwise, as an incident's remedy.
type Variant struct {
	Name        string `yaml:"name"`                  // unique
	Description string `yaml:"description,omitempty"` // in a sentence
	// Set: fields by path, laid over the scenario and over --set
	Set map[string]any `yaml:"set,omitempty"`
}

// Figure is one row of the table of variants: a gate without a bound.
type Figure struct {
	Name      string   `yaml:"name"`                                                    // unique
	Objective string   `yaml:"objective,omitempty"`                                     // built-in; one of Objective and Expr
	Expr      string   `yaml:"expr,omitempty"`                                          // PromQL, as a gate's
	Figure    string   `yaml:"figure,omitempty"`                                        // of custom-figure, as a gate's
	Unit      string   `yaml:"unit,omitempty"`                                          // of Expr or Figure, as a signal's
	Better    string   `yaml:"better,omitempty"`                                        // of Expr or Figure: "lower" (the default) or "higher"
	Load      string   `yaml:"load,omitempty"`                                          // whose client-side objective is judged
	Signal    string   `yaml:"signal,omitempty"`                                        // of signal-moved and signal-returned
	Over      []string `yaml:"over,omitempty" zero:"all phases; leave it out for that"` // phases, default all
	// Together: consecutive phases of Over are one window of what is scraped, as a gate's
	Together bool `yaml:"together,omitempty"`
	// Transition: of transition-latency and transition-open
	Transition string `yaml:"transition,omitempty"`
	// Quantile: of transition-latency, as a gate's
	Quantile float64 `yaml:"quantile,omitempty" zero:"0.99"`
	// Spread: standard deviation of ln(B/A) between planes of one configuration, as `loadgen ab`
	// measures it; figures that have one may decide a comparison
	Spread *Bound `yaml:"spread,omitempty"`
}

// Capacity is a load whose highest value with all gates held is searched.
type Capacity struct {
	Field string `yaml:"field"` // of the scenario, as --set takes it: background.NAME.rate, nodes.count
	From  Bound  `yaml:"from"`  // least value, a rate as 50/s or a number
	To    Bound  `yaml:"to"`    // largest value
}

// Unit is PerSec for a rate and else Count.
func (c *Capacity) Unit() Unit {
	if c.From.Fits(PerSec) && c.To.Fits(PerSec) {
		return PerSec
	}
	return Count
}

// Signal is an incident's own metric: it lies still in the steady phases,
// moves under the fault, and comes back.
type Signal struct {
	Name string `yaml:"name"` // unique
	// Expr: PromQL with one result (docs/reference/recovery.md)
	Expr string `yaml:"expr"`
	// Unit: "seconds", "ratio", "bytes", "count", "per second" or "per hour"; default
	// a bare number.
	Unit   string   `yaml:"unit,omitempty"`
	Steady []string `yaml:"steady"`          // phases without the fault, for its noise
	Under  []string `yaml:"under"`           // phases with the fault
	After  []string `yaml:"after,omitempty"` // phases by whose end it has returned
}
