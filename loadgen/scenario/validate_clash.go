package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// faultMargin is how long a fault may take to be gone: one that ends when
// another begins is still in its way.
const faultMargin = 100 * time.Millisecond

// claim is a part of the plane that a fault works on. Two faults clash that have
// one at the same time, if either needs it alone. The rules are the
// supervisor's (controlplane/fault/claims.go), which has the last word: it knows
// who leads.
type claim struct {
	part  string
	alone bool
}

// clashes refuses faults of one phase that the supervisor would refuse when the
// second of them is due: half of a run would be lost by then.
func (v *validator) clashes(path string, p *Phase) {
	for j := range p.Faults {
		for i := range j {
			f, g := &p.Faults[i], &p.Faults[j]
			part, at := v.shared(f, g), meet(f, g)
			if part == "" || at < 0 {
				continue
			}
			v.fail(fmt.Sprintf("%s.faults[%d]", path, j), fmt.Sprintf("let one end %s before the other begins, with after and for", faultMargin),
				"%s needs %s, which faults[%d], %s, has %s after the phase's start too", g.Kind, part, i, f.Kind, Duration(at))
			break
		}
	}
}

// meet is when both faults are there for the first time, since the phase's
// start; below 0: never.
func meet(f, g *Fault) time.Duration {
	fs, gs := f.Times(), g.Times()
	for len(fs) > 0 && len(gs) > 0 {
		a, b := fs[0], gs[0]
		switch {
		case a > g.goneAfter(b):
			gs = gs[1:]
		case b > f.goneAfter(a):
			fs = fs[1:]
		default:
			return max(a, b)
		}
	}
	return -1
}

// goneAfter is when a fault that begins at a time is gone.
func (f *Fault) goneAfter(begin time.Duration) time.Duration {
	if f.For == 0 && f.Kind != control.FaultRestart {
		return maxPhase // the phase's end
	}
	return begin + f.For.D() + faultMargin
}

// shared is a part that two faults cannot have at once, or "".
func (v *validator) shared(f, g *Fault) string {
	wants := v.claims(g)
	for _, has := range v.claims(f) {
		if slices.ContainsFunc(wants, func(w claim) bool { return w.part == has.part && (w.alone || has.alone) }) {
			return has.part
		}
	}
	return ""
}

func (v *validator) claims(f *Fault) []claim {
	asked := f.Control(v.s.Seed)
	var all []claim
	process := func(names []string, alone bool, part string) {
		for _, name := range names {
			all = append(all, claim{"the process of " + name, alone})
			if part != "" {
				all = append(all, claim{part + name, true})
			}
		}
	}
	on := v.named(asked.Components)
	switch f.Kind {
	case control.FaultPause, control.FaultKill, control.FaultRestart:
		process(on, true, "")
	case control.FaultQuota:
		process(v.named([]string{control.KindEtcd}), true, "")
	case control.FaultSlowFsync:
		process(on, false, "the fsync of ")
	case control.FaultDescriptors:
		process(on, false, "the descriptor limit of ")
	case control.FaultDiskContention:
		all = append(all, claim{"the disk", true})
	case control.FaultWebhook:
		all = append(all, claim{"the webhook for " + f.Resource, true})
	case control.FaultNetworkDelay, control.FaultPartition:
		all = v.links(on, v.named(asked.Peers), len(asked.Peers) == 0)
	}
	return all
}

// named are the components that the selectors are sure to mean: the leader of
// several, and a follower, are known when the fault begins.
func (v *validator) named(selectors []string) []string {
	c := v.s.ControlPlane
	var all []string
	for _, text := range selectors {
		s, ok := control.ParseSelector(text)
		n := c.Count(s.Kind)
		switch {
		case !ok || s.Role != "" && n > 1:
		case s.Name != "":
			all = append(all, s.Name)
		default:
			for i := range n {
				all = append(all, control.ComponentName(s.Kind, i))
			}
		}
	}
	return all
}

// links are those between the components and the peers, or all that the
// components have: from API servers to etcd's members, and between these.
func (v *validator) links(on, peers []string, every bool) []claim {
	c := v.s.ControlPlane
	between := func(a, b string) bool { return slices.Contains(on, a) && (every || slices.Contains(peers, b)) }
	var all []claim
	for i := range c.Count(control.KindEtcd) {
		to := control.ComponentName(control.KindEtcd, i)
		for _, kind := range []string{control.KindEtcd, control.KindAPIServer} {
			for j := range c.Count(kind) {
				if from := control.ComponentName(kind, j); from != to && (between(from, to) || between(to, from)) {
					all = append(all, claim{"the link from " + from + " to " + to, true})
				}
			}
		}
	}
	return all
}
