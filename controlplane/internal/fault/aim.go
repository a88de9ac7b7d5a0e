package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
)

// leaderWithin bounds the question who leads: the host knows it or does not.
const leaderWithin = 5 * time.Second

// target is what a fault is aimed at.
type target struct {
	names  []string // the components, in the order of asking
	links  []Link
	claims []control.Claim
}

// possible tells whether this plane on this machine can have the fault at all.
func (m *Manager) possible(f control.Fault) error {
	if problems := f.ProblemsOn(m.host.Config()); len(problems) > 0 {
		return &control.InvalidFault{Problems: problems}
	}
	if err := m.available(f.Kind); err != nil {
		return fmt.Errorf("%s cannot begin: %w", f.Kind, err)
	}
	if err := m.host.Available(f.Kind); err != nil {
		return fmt.Errorf("%s cannot begin: %w", f.Kind, err)
	}
	return nil
}

// available says what this machine lacks for faults of a kind.
func available(kind string) error {
	switch kind {
	case control.FaultSlowFsync:
		return fsync.Available()
	case control.FaultDescriptors:
		return descriptorsAvailable()
	}
	return nil
}

// leaders looks up who leads each kind of which the fault names a role.
func (m *Manager) leaders(ctx context.Context, f control.Fault) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderWithin)
	defer cancel()
	found := map[string]string{}
	for _, text := range slices.Concat(f.Components, f.Peers) {
		s, _ := control.ParseSelector(text)
		if s.Role == "" || found[s.Kind] != "" {
			continue
		}
		leader, err := m.host.Leader(ctx, s.Kind)
		if err != nil {
			return nil, fmt.Errorf("%s cannot begin: %s: %w", f.Kind, text, err)
		}
		found[s.Kind] = leader
	}
	return found, nil
}

// aim finds the components and links that a fault is about, and refuses what
// clashes with another. The caller holds the lock.
func (m *Manager) aim(f control.Fault, leaders map[string]string) (target, error) {
	if m.open.Err() != nil {
		return target{}, fmt.Errorf("%s cannot begin: %w", f.Kind, errClosed)
	}
	if m.excluded != "" {
		return target{}, fmt.Errorf("%s cannot begin: %s", f.Kind, m.excluded)
	}
	// A follower that another fault has, or has stopped, is passed over, if there
	// is a free one.
	free := func(name string) bool {
		return m.clash(f.Kind, append(claimsOf(f, []string{name}, nil), control.ProcessClaim(name, false))) == nil
	}
	components := f.Components
	switch f.Kind {
	case control.FaultQuota:
		components = []string{control.KindEtcd}
	case control.FaultRestore:
		components = control.Kinds()
	}
	t := target{names: m.named(components, leaders, free)}
	if f.Kind == control.FaultNetworkDelay || f.Kind == control.FaultPartition {
		peers := m.named(f.Peers, leaders, free)
		if t.links = m.linksOf(t.names, peers); len(t.links) == 0 {
			return t, &control.InvalidFault{Problems: []control.Problem{control.NoLink(t.names, peers)}}
		}
	}
	t.claims = claimsOf(f, t.names, t.links)
	return t, m.clash(f.Kind, t.claims)
}

// named are the components that the selectors mean, each once.
func (m *Manager) named(texts []string, leaders map[string]string, free func(string) bool) []string {
	config := m.host.Config()
	var all []string
	for _, text := range texts {
		s, _ := control.ParseSelector(text)
		var found []string
		switch {
		case s.Name != "":
			found = []string{s.Name}
		case s.Role == control.RoleLeader:
			found = []string{leaders[s.Kind]}
		default:
			for i := range config.Count(s.Kind) {
				found = append(found, control.ComponentName(s.Kind, i))
			}
		}
		if s.Role == control.RoleFollower {
			found = slices.DeleteFunc(found, func(name string) bool { return name == leaders[s.Kind] })
			found = found[max(slices.IndexFunc(found, free), 0):][:1]
		}
		for _, name := range found {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// linksOf are the links between the components and the peers, in either
// direction; with no peers, all that the components have.
func (m *Manager) linksOf(names, peers []string) []Link {
	between := func(a, b string) bool {
		return slices.Contains(names, a) && (len(peers) == 0 || slices.Contains(peers, b))
	}
	var all []Link
	for _, l := range m.host.Links() {
		if between(l.From(), l.To()) || between(l.To(), l.From()) {
			all = append(all, l)
		}
	}
	return all
}
