package scenario

import (
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Fault is something broken in a phase. Those of the control plane are real
// ones on its real processes: its supervisor is asked for them, and a user's
// cluster has none.
type Fault struct {
	// Kind is one of those listed above: of the control plane, or of simulated nodes.
	Kind string `yaml:"kind"`
	// Component it is about: a name ("etcd-0"), a kind ("etcd": all of them), or a
	// kind with -leader or -follower, looked up when the fault begins. Default: all
	// of etcd for slowFsync. An etcdQuota is always of all members.
	Component string `yaml:"component,omitempty"`
	// Components, where there are several.
	Components []string `yaml:"components,omitempty"`
	// Peers are the other ends of the links of a networkDelay or partition.
	// Default: all that the components have.
	Peers []string `yaml:"peers,omitempty"`
	// After is the time from the phase's start to the fault's. Default 0s.
	After Duration `yaml:"after,omitempty"`
	// For is the length of a fault of the control plane. Default: to the phase's
	// end. Longer than the phase can last is refused; one that is still there when a
	// condition ends the phase is ended too.
	For Duration `yaml:"for,omitempty" zero:"to the phase's end"`
	// Repeat begins the fault so many times, Every apart. Default 1.
	Repeat int `yaml:"repeat,omitempty" zero:"1"`
	// Every is the time from one begin to the next.
	Every Duration `yaml:"every,omitempty"`

	// Fraction of all simulated nodes, over 0 and at most 1. Which ones is drawn by the seed.
	Fraction float64 `yaml:"fraction,omitempty"`
	// Delay of each fsync, of data on a link in each direction, of a webhook's
	// answers, or of a slowKubelet's writes, heartbeats among them.
	Delay Duration `yaml:"delay,omitempty"`
	// Jitter is added to or taken from the Delay of an fsync or a link, evenly
	// drawn up to so much.
	Jitter Duration `yaml:"jitter,omitempty"`
	// Files of a slowFsync: "wal" (the default) or "all".
	Files string `yaml:"files,omitempty"`
	// Limit of open files of a descriptorLimit.
	Limit int `yaml:"limit,omitempty"`
	// Writers of a diskContention, each of which writes Size bytes and fsyncs, over
	// and over. Default 4.
	Writers int `yaml:"writers,omitempty" zero:"4"`
	// Size of each write of a diskContention. Default 1MiB.
	Size Bytes `yaml:"size,omitempty" zero:"1MiB"`
	// Quota of an etcdQuota.
	Quota Bytes `yaml:"quota,omitempty"`
	// Resource whose creation a webhook is asked about, as "pods" or
	// "deployments.apps".
	Resource string `yaml:"resource,omitempty"`
	// Fails makes a webhook answer 500.
	Fails bool `yaml:"fails,omitempty"`
	// Ignore makes the API server go on without the webhook (failurePolicy
	// Ignore). Default: refuse (Fail).
	Ignore bool `yaml:"ignore,omitempty"`
	// Timeout is the API server's patience with a webhook, whole seconds, 1s to
	// 30s. Default 10s, upstream's.
	Timeout Duration `yaml:"timeout,omitempty" zero:"10s"`
}

// kind describes the fault's kind.
func (f Fault) kind() control.FaultKind {
	k, _ := control.FaultKindOf(f.Kind)
	return k
}

// StopsNodes reports whether nodes are silent after the fault.
func (f Fault) StopsNodes() bool { return f.kind().SilencesNodes }

// OfNodes reports whether the fault is one of simulated nodes.
func (f Fault) OfNodes() bool { return f.kind().OfNodes }

// Momentary reports whether a fault of the control plane has no length.
func (f Fault) Momentary() bool { return f.kind().Momentary }

// OfNetwork reports whether the fault needs links that can be delayed and cut.
func (f Fault) OfNetwork() bool { return f.kind().Links }

// On are the components that the fault is about, as they are written.
func (f Fault) On() []string {
	if f.Component != "" {
		return append([]string{f.Component}, f.Components...)
	}
	return f.Components
}

// Times says when the fault begins, since the start of its phase.
func (f Fault) Times() []time.Duration {
	var all []time.Duration
	for i := range max(1, f.Repeat) {
		all = append(all, f.After.D()+time.Duration(i)*f.Every.D())
	}
	return all
}

// Span is from the start of the phase to when the fault has ended by itself;
// one that lasts to the phase's end is counted with no length.
func (f Fault) Span() time.Duration {
	times := f.Times()
	return times[len(times)-1] + f.For.D()
}

// Control is the fault as a plane's supervisor is asked for it. Random parts
// follow the scenario's seed.
func (f Fault) Control(seed int64) control.Fault {
	on := f.On()
	if len(on) == 0 && f.kind().OfMembers() {
		on = []string{control.KindEtcd}
	}
	return control.Fault{
		Kind: f.Kind, Components: on, Peers: f.Peers, For: f.For.D(), Delay: f.Delay.D(), Jitter: f.Jitter.D(), Files: f.Files,
		Limit: uint64(max(0, f.Limit)), Writers: f.Writers, Size: int64(f.Size), Quota: int64(f.Quota),
		Resource: f.Resource, Fails: f.Fails, Ignore: f.Ignore, TimeoutSeconds: int(f.Timeout.D() / time.Second), Seed: seed,
	}
}

// PlacedFault is a fault and where it stands.
type PlacedFault struct {
	*Fault
	Phase string
	// Path of the fault in the file.
	Path string
}
