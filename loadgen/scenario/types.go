// Package scenario is the schema of a scenario file, its strict loading
// (errors name file, line, field and a hint), its validation, and the
// built-in catalogue.
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

// Scenario is one storm: what is brought up, what is done to it, and how it
// is judged.
type Scenario struct {
	APIVersion string `yaml:"apiVersion"` // stormglass/v1alpha1
	Kind       string `yaml:"kind"`       // Scenario
	// Name of the scenario: lower-case letters, digits and -, at most 40.
	Name string `yaml:"name"`
	// Description in a sentence or two, for lists and reports.
	Description string `yaml:"description,omitempty"`
	// Seed of everything random. Default 1. Same seed, same operations.
	Seed int64 `yaml:"seed,omitempty" zero:"1"`
	// ControlPlane is how the bundled plane is configured. A user's cluster is
	// compared with it, not changed.
	ControlPlane control.Config `yaml:"controlPlane,omitempty"`
	Nodes        Nodes          `yaml:"nodes,omitempty"`  // the simulated nodes
	Record       Record         `yaml:"record,omitempty"` // how metrics are recorded
	// Background loads run through every phase and are reported per phase.
	Background []Load  `yaml:"background,omitempty"`
	Phases     []Phase `yaml:"phases"`          // run one after another, in this order
	Gates      []Gate  `yaml:"gates,omitempty"` // all have to pass; without any the run cannot be judged
	// Signals are the metrics by which the incident shows.
	Signals []Signal `yaml:"signals,omitempty"`
	// Variants are the scenario with some fields set otherwise, to be compared.
	Variants []Variant `yaml:"variants,omitempty"`
	// Compare are the rows of the table that sets variants side by side.
	Compare []Figure `yaml:"compare,omitempty"`
	// Variant is which variant this is: written by a run into its own scenario.yaml,
	// with the variant's fields set and variants left out.
	Variant string `yaml:"variant,omitempty"`

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
	// Interval between scrapes. Default 5s; at least 1s. Every phase also
	// begins and ends with a scrape.
	Interval Duration `yaml:"interval,omitempty" zero:"5s"`
	// Drop are metric families not to record, by name.
	Drop []string `yaml:"drop,omitempty"`
}

// Phase is one stamped stretch of the run. It ends after For, or when Until
// holds (at latest after Within).
type Phase struct {
	// Name of the phase, by which gates and results refer to it.
	Name string `yaml:"name"`
	// For is a fixed length. Exactly one of For and Until is set.
	For Duration `yaml:"for,omitempty" zero:"no end"`
	// Until is a condition: nodesReady, nodesNotReady, podsReady, watchesOpen.
	// What they mean is told above.
	Until string `yaml:"until,omitempty"`
	// Within bounds Until. Required with it. A phase whose condition was not
	// met within it fails the run unless no gate covers it.
	Within  Duration `yaml:"within,omitempty" zero:"no bound"`
	Actions []Action `yaml:"actions,omitempty"` // done at the start, in this order
	Faults  []Fault  `yaml:"faults,omitempty"`  // each begins at its time; none waits for the actions
	Load    []Load   `yaml:"load,omitempty"`    // running for as long as the phase
}

// Action is something done to workload objects at the start of a phase.
type Action struct {
	// Kind: "deploy", "rollingUpdate", "scale", "delete".
	Kind string `yaml:"kind"`
	// Name of the Deployment (and its Service).
	Name string `yaml:"name"`
	// Replicas for deploy and scale.
	Replicas int `yaml:"replicas,omitempty"`
	// Service: deploy also makes a Service of the same name.
	Service bool `yaml:"service,omitempty"`
	// MaxSurge of a rollingUpdate, "25%" or a number. Default 25%, upstream's.
	MaxSurge string `yaml:"maxSurge,omitempty"`
	// MaxUnavailable of a rollingUpdate, "25%" or a number. Default 25%, upstream's.
	MaxUnavailable string `yaml:"maxUnavailable,omitempty"`
	// CPU that each pod of a deploy requests. Default 10m.
	CPU string `yaml:"cpu,omitempty"`
	// Memory that each pod of a deploy requests. Default 16Mi.
	Memory string `yaml:"memory,omitempty"`
	// EvictAfter of a deploy is tolerationSeconds for not-ready and
	// unreachable nodes, in whole seconds. Default: upstream's, 300s.
	EvictAfter Duration `yaml:"evictAfter,omitempty" zero:"upstream's 300s"`
	// AntiAffinity of a deploy's pods to each other, by node: "preferred" (the
	// scheduler scores nodes for it) or "required" (no two on one node). Default: none.
	AntiAffinity string `yaml:"antiAffinity,omitempty"`
	// TopologySpread are the spread constraints of a deploy's pods. Default:
	// none of their own, so the scheduler's defaults.
	TopologySpread []TopologySpread `yaml:"topologySpread,omitempty"`
}

// TopologySpread is one spread constraint of a deploy's pods.
type TopologySpread struct {
	// Key of the node label that makes the groups, as
	// "topology.kubernetes.io/zone" or "kubernetes.io/hostname".
	Key string `yaml:"key"`
	// MaxSkew between the groups, in pods. Default 1.
	MaxSkew int `yaml:"maxSkew,omitempty" zero:"1"`
	// Soft constraints are scored (ScheduleAnyway). Default: a pod that would
	// break one is not scheduled (DoNotSchedule).
	Soft bool `yaml:"soft,omitempty"`
}

// Gate is one condition for the run to pass.
type Gate struct {
	// Name of the gate, unique in the scenario; --set gates.NAME.max=... addresses it.
	Name string `yaml:"name"`
	// Objective is a built-in objective. Exactly one
	// of Objective, Expr and Alert is set.
	Objective string `yaml:"objective,omitempty"`
	// Expr is PromQL, evaluated at the end of the phases in Over; $window is
	// their length. It must give exactly one series or scalar.
	Expr string `yaml:"expr,omitempty"`
	// Alert is one of docs/reference/alerts.md, or of rules that `loadgen gate` is given: it must
	// fire in one of the phases in Over, or in none, as Fires says.
	Alert string `yaml:"alert,omitempty"`
	// Fires reports whether the Alert must fire (true) or must not (false).
	Fires *bool `yaml:"fires,omitempty"`
	// Load restricts a client-side objective to the load of that name.
	Load string `yaml:"load,omitempty"`
	// Max is the highest value that passes. Exactly one of Max and Min is set, but for an Alert.
	Max *Bound `yaml:"max,omitempty"`
	// Min is the lowest value that passes.
	Min *Bound `yaml:"min,omitempty"`
	// Signal restricts signal-moved and signal-returned to the signal of that name.
	Signal string `yaml:"signal,omitempty"`
	// Over names the phases judged. Default: all of them.
	Over []string `yaml:"over,omitempty" zero:"all phases; leave it out for that"`
	// Variants in which the gate is judged, by name. Default: all of them.
	Variants []string `yaml:"variants,omitempty" zero:"all variants; leave it out for that"`
}
