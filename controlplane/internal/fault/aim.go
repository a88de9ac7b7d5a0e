package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/controlplane/control"
)

// leaderTimeout is the time limit of one lookup of leaders. electedWithin is the maximum time that a fault waits for an
// election in progress: after the holder of a lease is lost, another component acquires the lease within 24 s.
const (
	leaderTimeout = 5 * time.Second
	electedWithin = 30 * time.Second
)

// target holds the components and links that a fault affects, and the fault's claims on them (see control.Claim).
type target struct {
	names  []string // the components in the requested order; for an upgrade or a downgrade, in the order of their restarts
	same   []string // for an upgrade or a downgrade: the components whose program does not change, so that they do not restart
	links  []Link
	claims []control.Claim
}

// checkPossible returns an error if f is invalid for this plane, or if the plane or this machine does not support it.
func (m *Manager) checkPossible(ctx context.Context, f control.Fault) error {
	if problems := f.ProblemsOn(m.host.Config()); len(problems) > 0 {
		return &control.InvalidFault{Problems: problems}
	}
	err := m.host.Available()
	if lacks := m.mechanisms[f.Kind].lacks; err == nil && lacks != nil {
		err = lacks(m, ctx, f)
	}
	if err == nil || errors.As(err, new(*control.InvalidFault)) {
		return err
	}
	return fmt.Errorf("%s cannot begin: %w", f.Kind, err)
}

// leaders looks up the leader of each kind that the fault selects by role.
func (m *Manager) leaders(ctx context.Context, f control.Fault) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
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

// elected returns the leader of each kind that the fault selects by role. It waits for an election in progress, because
// an earlier fault may have removed the previous leader.
func (m *Manager) elected(ctx context.Context, f control.Fault) (found map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, electedWithin)
	defer cancel()
	defer context.AfterFunc(m.open, cancel)()
	_ = wait.PollUntilContextCancel(ctx, time.Second/2, true, func(ctx context.Context) (bool, error) {
		leaders, failure := m.leaders(ctx, f)
		if failure == nil || ctx.Err() == nil { // ignore an error that only the end of ctx caused
			found, err = leaders, failure
		}
		return err == nil, nil
	})
	if found == nil && err == nil {
		err = ctx.Err()
	}
	return found, err
}

// aim returns the components and links that a fault affects, with the fault's claims. It fails if the claims clash with
// another fault. The caller holds m.mu.
func (m *Manager) aim(f control.Fault, leaders map[string]string) (target, error) {
	if m.open.Err() != nil {
		return target{}, fmt.Errorf("%s cannot begin: %w", f.Kind, errClosed)
	}
	if m.excluded != "" {
		return target{}, fmt.Errorf("%s cannot begin: %s", f.Kind, m.excluded)
	}
	inRole := func(s control.Selector) []string {
		if s.Role == control.RoleLeader {
			return []string{leaders[s.Kind]}
		}
		return []string{m.follower(f, s.Kind, leaders[s.Kind])}
	}
	config := m.host.Config()
	t := target{names: config.Named(f.Selectors(), inRole)}
	if f.Moves() {
		if _, moving, problem := f.Moved(config, t.names, ""); problem == nil {
			t.same = slices.DeleteFunc(t.names, func(name string) bool { return slices.Contains(moving, name) })
			t.names = moving
		}
	}
	peers := config.Named(f.Peers, inRole)
	var links []control.Link
	if kind, _ := control.FaultKindOf(f.Kind); kind.Links {
		for _, l := range m.host.Links() {
			if ends := (control.Link{From: l.From(), To: l.To()}); ends.Joins(t.names, peers, len(f.Peers) == 0) {
				t.links, links = append(t.links, l), append(links, ends)
			}
		}
		if len(links) == 0 {
			return t, &control.InvalidFault{Problems: []control.Problem{control.NoLink(t.names, peers)}}
		}
	}
	t.claims = f.Claims(t.names, links)
	return t, m.conflict(f.Kind, t.claims)
}

// follower returns the first component of a kind, except the leader, that no other fault affects or has stopped. If
// other faults affect all of these components, it returns the first.
func (m *Manager) follower(f control.Fault, kind, leader string) string {
	others := slices.DeleteFunc(m.host.Config().ComponentsOf(kind), func(name string) bool { return name == leader })
	free := slices.IndexFunc(others, func(name string) bool {
		return m.conflict(f.Kind, append(f.Claims([]string{name}, nil), control.ProcessClaim(name, false))) == nil
	})
	return others[max(free, 0)]
}

// BusyError reports that a fault cannot begin, because another fault that is active or about to begin affects the same
// part of the plane.
type BusyError struct {
	// Kind is the kind of the refused fault, and Part the part of the plane that both faults need. At is the time of
	// the request. Holder is the other fault.
	Kind, Part string
	At         time.Time
	Holder     control.FaultStatus
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s cannot begin: %s is already used by fault %s, %s, %s (end it with: controlplane fault clear %s)",
		e.Kind, e.Part, e.Holder.ID, e.Holder.Kind, e.state(), e.Holder.ID)
}

func (e *BusyError) state() string {
	switch {
	case e.Holder.Error != "":
		return "which could not be undone"
	case e.Holder.Active.IsZero():
		return "which is about to begin"
	case e.Holder.Momentary():
		return e.Holder.CourseEnds()
	case e.Holder.Ends.IsZero():
		return "until it is cleared"
	}
	return fmt.Sprintf("for another %s", max(e.Holder.Ends.Sub(e.At), 0).Round(time.Second/10))
}

// conflict returns a *BusyError for the first fault that holds one of the claimed parts. The caller holds m.mu.
func (m *Manager) conflict(kind string, want []control.Claim) error {
	for _, a := range m.faults {
		if !a.status.Ended.IsZero() {
			continue
		}
		if part, taken := control.Clash(want, a.claims); taken {
			return &BusyError{kind, part, time.Now(), a.status}
		}
	}
	return nil
}
