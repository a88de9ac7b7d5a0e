package timeline

import (
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
)

// about describes the fault's kind. One that is not known here counts as one for which
// the supervisor ends processes: then the fault accounts only for the exits that the
// supervisor marks as its own.
func (f Fault) about() control.FaultKind {
	kind, ok := control.FaultKindOf(f.Kind)
	if !ok {
		kind.Process, kind.Silences = control.ProcessEnded, true
	}
	return kind
}

// stops reports whether the supervisor ends processes for the fault.
func (f Fault) stops() bool { return f.about().Process == control.ProcessEnded }

// silences reports whether its components do not answer while the fault is in force.
func (f Fault) silences() bool { return f.about().Silences }

// silencesElected reports whether schedulers and controller managers may not answer
// while the fault is in force: they ask an API server who scrapes them.
func (f Fault) silencesElected() bool {
	return f.about().Isolates || f.silences() && (f.isOn(control.KindEtcd) || f.isOn(control.KindAPIServer))
}

// accountsFor reports whether a component may end by itself under the fault. marked: the
// supervisor marks the exits that it asked for; where it does not, all of the fault's
// own components are meant.
func (f Fault) accountsFor(x Exit, marked bool) bool {
	reachesEtcd := f.isOn(control.KindEtcd) || f.about().ReachesEtcd
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

// isOn reports whether the fault is on a component of a kind.
func (f Fault) isOn(kind string) bool {
	return slices.ContainsFunc(f.On, func(name string) bool { return control.ComponentKind(name) == kind })
}

// isElected reports whether a component needs a lease to live.
func isElected(name string) bool {
	kind := control.ComponentKind(name)
	return kind == control.KindScheduler || kind == control.KindControllerManager
}
