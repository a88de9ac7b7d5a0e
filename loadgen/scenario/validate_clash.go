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

// clashes refuses faults of one phase that the supervisor would refuse when the
// second of them is due: half of a run would be lost by then. The supervisor has
// the last word: it knows who leads.
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
	part, _ := control.Clash(v.claims(f), v.claims(g))
	return part
}

func (v *validator) claims(f *Fault) []control.Claim {
	asked := f.Control(v.s.Seed)
	on := v.named(asked.Components)
	if f.OfNetwork() {
		return v.links(on, v.named(asked.Peers), len(asked.Peers) == 0)
	}
	if f.Kind == control.FaultQuota {
		on = v.named([]string{control.KindEtcd})
	}
	return asked.Claims(on)
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
func (v *validator) links(on, peers []string, every bool) []control.Claim {
	c := v.s.ControlPlane
	between := func(a, b string) bool { return slices.Contains(on, a) && (every || slices.Contains(peers, b)) }
	var all []control.Claim
	for i := range c.Count(control.KindEtcd) {
		to := control.ComponentName(control.KindEtcd, i)
		for _, kind := range []string{control.KindEtcd, control.KindAPIServer} {
			for j := range c.Count(kind) {
				if from := control.ComponentName(kind, j); from != to && (between(from, to) || between(to, from)) {
					all = append(all, control.LinkClaim(from, to))
				}
			}
		}
	}
	return all
}
