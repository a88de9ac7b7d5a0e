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
	if f.For == 0 && !f.Momentary() {
		return maxPhase // the phase's end
	}
	return begin + f.For.D() + faultMargin
}

// shared is a part that two faults cannot have at once, or "". What only one
// component in a role would have with the other fault, another may not.
func (v *validator) shared(f, g *Fault) string {
	a, b := v.needs(f), v.needs(g)
	if part, clash := control.Clash(a.sure, b.sure); clash {
		return part
	}
	for _, r := range a.roles {
		if r.always(b.sure) {
			return r.part
		}
	}
	for _, r := range b.roles {
		if r.always(a.sure) {
			return r.part
		}
	}
	return ""
}

// needs are the parts that a fault is sure to work on, and those that it works on
// with whoever is in a role when it begins.
type needs struct {
	sure  []control.Claim
	roles []roleNeeds
}

type roleNeeds struct {
	part string            // for a person: "the process of etcd-leader"
	may  [][]control.Claim // one of these: of each component that may be in the role
}

// always tells whether the role's parts clash with others, whoever is in it.
func (r roleNeeds) always(has []control.Claim) bool {
	return len(r.may) > 0 && !slices.ContainsFunc(r.may, func(want []control.Claim) bool {
		_, clash := control.Clash(want, has)
		return !clash
	})
}

func (v *validator) needs(f *Fault) needs {
	asked := f.Control(v.s.Seed)
	if f.Kind == control.FaultQuota || f.Kind == control.FaultRestore {
		asked.Components = []string{control.KindEtcd}
	}
	n := needs{sure: v.claims(f, asked, v.named(asked.Components))}
	for _, text := range asked.Components {
		s, ok := control.ParseSelector(text)
		if !ok || s.Role == "" || v.s.ControlPlane.Count(s.Kind) == 1 {
			continue
		}
		r := roleNeeds{part: "the process of " + text}
		if f.OfNetwork() {
			r.part = "a link of " + text
		}
		for _, name := range v.named([]string{s.Kind}) {
			r.may = append(r.may, v.claims(f, asked, []string{name}))
		}
		n.roles = append(n.roles, r)
	}
	return n
}

// claims are the parts that the fault works on if it is about these components.
func (v *validator) claims(f *Fault, asked control.Fault, on []string) []control.Claim {
	if f.OfNetwork() {
		return v.links(on, v.named(asked.Peers), len(asked.Peers) == 0)
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
