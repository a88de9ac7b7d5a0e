package scenario

import (
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Fault breaks components of a bundled control plane, or simulated nodes.
type Fault struct {
	Kind string `yaml:"kind"` // kind of fault (docs/reference/faults.md#the-kinds)
	// Component: name, kind or role of the component, as a short form of `components`
	// (docs/reference/faults.md#components); default for slowFsync: all etcd members
	Component  string   `yaml:"component,omitempty"`
	Components []string `yaml:"components,omitempty"` // names, kinds or roles of several components
	// Peers: components at the other ends of the connections that a networkDelay or partition affects; default all
	Peers []string `yaml:"peers,omitempty"`
	After Duration `yaml:"after,omitempty"` // time from the phase's start to the fault's start
	// For: length of the fault; default: to the end of the phase
	For Duration `yaml:"for,omitempty" zero:"until the end of the phase"`
	// Repeat: number of times that the fault occurs, at intervals of `every`; default 1
	Repeat int      `yaml:"repeat,omitempty" zero:"1"`
	Every  Duration `yaml:"every,omitempty"` // time from one start of the fault to the next

	// Fraction: fraction of the nodes that the fault affects: over 0, at most 1
	Fraction float64 `yaml:"fraction,omitempty"`
	// OutOfService: a nodeFailure adds the taint node.kubernetes.io/out-of-service to its nodes once they are not
	// Ready; nodeRecovery removes the taint
	OutOfService bool `yaml:"outOfService,omitempty"`
	// Delay: delay of each fsync, of data in each direction of a connection, of each response of a webhook or service,
	// or of a slowKubelet's writes
	Delay   Duration `yaml:"delay,omitempty"`
	Jitter  Duration `yaml:"jitter,omitempty"`           // maximum random deviation from `delay`, uniformly distributed
	Files   string   `yaml:"files,omitempty"`            // which files a slowFsync delays: "wal" (default) or "all"
	Limit   int      `yaml:"limit,omitempty"`            // maximum number of open files of the process
	Writers int      `yaml:"writers,omitempty" zero:"4"` // number of writers of a diskContention, default 4
	Size    Bytes    `yaml:"size,omitempty" zero:"1MiB"` // size of each write of a diskContention, default 1MiB
	Quota   Bytes    `yaml:"quota,omitempty"`            // maximum size of etcd's database
	// Resource: resource whose creation the webhook reviews, such as "pods" or "deployments.apps"
	Resource string `yaml:"resource,omitempty"`
	Fails    bool   `yaml:"fails,omitempty"` // a webhook or service answers with status 500
	// Throttle: maximum rate of requests that a service accepts; further requests get status 429
	Throttle Rate     `yaml:"throttle,omitempty" zero:"no limit; leave it out to use the default"`
	Ignore   bool     `yaml:"ignore,omitempty"`             // the webhook has failurePolicy Ignore instead of Fail
	Timeout  Duration `yaml:"timeout,omitempty" zero:"10s"` // timeout of each webhook call, 1s to 30s, default 10s
	// Webhooks: number of webhooks, called in parallel or, if they mutate, one after another; default 1
	Webhooks int `yaml:"webhooks,omitempty" zero:"1"`
	// Mutates: each webhook adds an annotation instead of only allowing the request
	Mutates bool `yaml:"mutates,omitempty"`
	// Reinvoke: mutating webhooks have reinvocationPolicy IfNeeded instead of Never
	Reinvoke bool `yaml:"reinvoke,omitempty"`
	// To: minor version to upgrade or downgrade to, such as "1.37" (docs/reference/versions.md)
	To string `yaml:"to,omitempty"`
}

// Traits returns the properties of the kind of fault.
func (f Fault) Traits() control.FaultKind {
	k, _ := control.FaultKindOf(f.Kind)
	return k
}

// StopsNodes reports whether the affected nodes send no requests after the fault.
func (f Fault) StopsNodes() bool { return f.Traits().SilencesNodes }

// OfNodes reports whether the fault affects simulated nodes.
func (f Fault) OfNodes() bool { return f.Traits().OfNodes }

func (f Fault) moves() bool { return control.Fault{Kind: f.Kind}.Moves() }

// On lists the names or selectors of the affected components, as written in the scenario.
func (f Fault) On() []string {
	if f.Component != "" {
		return append([]string{f.Component}, f.Components...)
	}
	return f.Components
}

// Times returns the times at which the fault begins, counted from the start of its phase. Only a repeated fault has
// several.
func (f Fault) Times() []time.Duration {
	var all []time.Duration
	for i := range max(1, f.Repeat) {
		all = append(all, f.After.D()+time.Duration(i)*f.Every.D())
	}
	return all
}

// Span returns the time from the start of the phase until the fault ends. For a fault that lasts until the phase ends,
// it returns the time until the fault begins.
func (f Fault) Span() time.Duration {
	times := f.Times()
	return times[len(times)-1] + f.For.D()
}

// Control converts the fault to the type that the supervisor of the control plane accepts. seed is the scenario's seed,
// which determines the random parts of the fault.
func (f Fault) Control(seed int64) control.Fault {
	on := f.On()
	if len(on) == 0 && f.Traits().OfMembers() {
		on = []string{control.KindEtcd}
	}
	return control.Fault{
		Kind: f.Kind, Components: on, Peers: f.Peers, For: f.For.D(), Delay: f.Delay.D(), Jitter: f.Jitter.D(), Files: f.Files,
		Limit: uint64(max(0, f.Limit)), Writers: f.Writers, Size: int64(f.Size), Quota: int64(f.Quota),
		Resource: f.Resource, Fails: f.Fails, Throttle: float64(f.Throttle), Ignore: f.Ignore, TimeoutSeconds: int(f.Timeout.D() / time.Second),
		Webhooks: f.Webhooks, Mutates: f.Mutates, Reinvoke: f.Reinvoke, To: f.To, Seed: seed,
	}
}

// PlacedFault is a fault with its location in the scenario.
type PlacedFault struct {
	*Fault
	Phase string
	// Path is the path of the fault in the scenario.
	Path string
}
