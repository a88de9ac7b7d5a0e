package timeline

import (
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
)

// stops tells whether the supervisor ends processes for the fault. A kind that is not
// known here counts as one: then the fault accounts only for the exits that the
// supervisor marks as its own.
func (f Fault) stops() bool {
	return f.silences() && f.Kind != control.FaultPause && f.Kind != control.FaultDescriptors
}

// silences tells whether its components do not answer while the fault is in force.
// Scrapes go straight to a component, not over the links that faults delay and cut.
func (f Fault) silences() bool {
	switch f.Kind {
	case control.FaultSlowFsync, control.FaultDiskContention, control.FaultNetworkDelay, control.FaultPartition, control.FaultWebhook:
		return false
	}
	return true
}

// silencesElected tells whether schedulers and controller managers may not answer
// while the fault is in force: they ask an API server who scrapes them.
func (f Fault) silencesElected() bool {
	return f.Kind == control.FaultPartition || f.silences() && (f.isOn(control.KindEtcd) || f.isOn(control.KindAPIServer))
}

// accountsFor tells whether a component may end by itself under the fault. marked: the
// supervisor marks the exits that it asked for; where it does not, all of the fault's
// own components are meant.
func (f Fault) accountsFor(x Exit, marked bool) bool {
	reachesEtcd := f.isOn(control.KindEtcd) || f.onLinks() || f.Kind == control.FaultDiskContention
	switch {
	case f.Hits(x.Component) && (!f.stops() || !marked):
		return true
	case isElected(x.Component):
		return reachesEtcd || f.isOn(control.KindAPIServer)
	case control.ComponentKind(x.Component) == control.KindAPIServer:
		return x.starting && reachesEtcd
	}
	return false
}

func (f Fault) onLinks() bool {
	return f.Kind == control.FaultNetworkDelay || f.Kind == control.FaultPartition
}

// isOn tells whether the fault is on a component of a kind.
func (f Fault) isOn(kind string) bool {
	return slices.ContainsFunc(f.On, func(name string) bool { return control.ComponentKind(name) == kind })
}

// isElected tells whether a component needs a lease to live.
func isElected(name string) bool {
	kind := control.ComponentKind(name)
	return kind == control.KindScheduler || kind == control.KindControllerManager
}
