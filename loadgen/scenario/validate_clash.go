package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// faultMargin is the maximum time for removing a fault. During this time, the ended fault still interferes with a fault
// that begins.
const faultMargin = 100 * time.Millisecond

// clashes reports an error for two faults of one phase if the supervisor would refuse the later fault. Without this
// check, the run would fail only when the later fault begins. The supervisor makes the final decision, because only
// the supervisor knows the leader.
func (v *validator) clashes(path string, p *Phase) {
	for j := range p.Faults {
		for i := range j {
			f, g := &p.Faults[i], &p.Faults[j]
			part, at := v.shared(f, g), meet(f, g)
			if part == "" || at < 0 {
				continue
			}
			v.fail(fmt.Sprintf("%s.faults[%d]", path, j), fmt.Sprintf("change after or for, so that one fault ends at least %s before the other begins", faultMargin),
				"this %s and faults[%d] (%s) both affect %s, %s after the start of the phase", g.Kind, i, f.Kind, part, Duration(at))
			break
		}
	}
}

// meet returns the first time, since the start of the phase, at which both faults are active. It returns a negative
// value if there is no such time.
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

func (f *Fault) goneAfter(begin time.Duration) time.Duration {
	if f.For == 0 && !f.Traits().Momentary {
		return maxPhase // the phase's end
	}
	return begin + f.For.D() + faultMargin
}

// shared names, in words, a part of the control plane that the two faults cannot affect at the same time, or "" if
// they can be active together.
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

// needs holds the claims of a fault on parts of the control plane. `sure` holds the certain claims. roles holds the
// claims that depend on which component has a role, such as leader, when the fault begins.
type needs struct {
	sure  []control.Claim
	roles []roleNeeds
}

type roleNeeds struct {
	part string            // the part of the control plane in words, for messages: "the process of etcd-leader"
	may  [][]control.Claim // the fault's claims, for each component that may hold the role
}

// always reports whether the role's claims clash with the claims in `has` for every component that may hold it.
func (r roleNeeds) always(has []control.Claim) bool {
	return len(r.may) > 0 && !slices.ContainsFunc(r.may, func(want []control.Claim) bool {
		_, clash := control.Clash(want, has)
		return !clash
	})
}

func (v *validator) needs(f *Fault) needs {
	asked := f.Control(v.s.Seed)
	n := needs{sure: v.claims(asked, v.named(asked.Selectors()))}
	for _, text := range asked.Components {
		s, ok := control.ParseSelector(text)
		if !ok || s.Role == "" || v.s.ControlPlane.Count(s.Kind) == 1 {
			continue
		}
		r := roleNeeds{part: "the process of " + text}
		if f.Traits().Links {
			r.part = "a link of " + text
		}
		for _, name := range v.s.ControlPlane.ComponentsOf(s.Kind) {
			r.may = append(r.may, v.claims(asked, []string{name}))
		}
		n.roles = append(n.roles, r)
	}
	return n
}

func (v *validator) claims(asked control.Fault, on []string) []control.Claim {
	peers := v.named(asked.Peers)
	links := slices.DeleteFunc(v.s.ControlPlane.Links(), func(l control.Link) bool { return !l.Joins(on, peers, len(asked.Peers) == 0) })
	return asked.Claims(on, links)
}

// named returns the components that the selectors are certain to select. If there are several components, it ignores a
// selector by role, such as leader, because only the start of the fault determines which one has the role.
func (v *validator) named(selectors []string) []string {
	c := v.s.ControlPlane
	return c.Named(selectors, func(s control.Selector) []string {
		if c.Count(s.Kind) > 1 {
			return nil
		}
		return c.ComponentsOf(s.Kind)
	})
}
