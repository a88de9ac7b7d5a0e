package control

import (
	"fmt"
	"slices"
	"strings"
)

// A move is an upgrade or downgrade (kinds of fault): it restarts components with another release, one after another.

// Moves reports whether the fault is an upgrade or a downgrade.
func (f Fault) Moves() bool { return f.Kind == FaultUpgrade || f.Kind == FaultDowngrade }

// MoveOrder sorts components in the order in which upstream upgrades them, or in the reverse order for a downgrade.
// `leader` is the name of the etcd leader, which comes last among the etcd members; "" means that the leader is
// unknown.
func (f Fault) MoveOrder(components []string, leader string) []string {
	kinds := VersionedKinds()
	if f.Kind == FaultDowngrade {
		slices.Reverse(kinds)
	}
	var order []string
	for _, kind := range kinds {
		last := ""
		for _, name := range components {
			switch {
			case ComponentKind(name) != kind:
			case name == leader:
				last = name
			default:
				order = append(order, name)
			}
		}
		if last != "" {
			order = append(order, last)
		}
	}
	return order
}

// Moved returns the config after an upgrade or downgrade of the given components, and the components whose release
// changes, in the order of MoveOrder. `leader` is the name of the etcd leader, as in MoveOrder. If the upgrade or
// downgrade is not possible, Moved returns a problem.
func (f Fault) Moved(c Config, components []string, leader string) (after Config, moving []string, p *Problem) {
	to, ok := ReleaseOf(f.To)
	if !ok {
		return c, nil, &Problem{"to", fmt.Sprintf("unknown version %q", f.To), ReleaseHint(f.To)}
	}
	after = c
	for _, name := range f.MoveOrder(components, leader) {
		from := after.ReleaseOf(name)
		kind := ComponentKind(name)
		now, then := from.number(kind), to.number(kind)
		switch {
		case from.VersionOf(kind) == to.VersionOf(kind):
			continue
		case f.Kind == FaultUpgrade && then < now, f.Kind == FaultDowngrade && then > now:
			return c, nil, &Problem{"to", fmt.Sprintf("%s has version %s, so the fault %s cannot move it to %s", name, from.VersionOf(kind), f.Kind, to.VersionOf(kind)), "use upgrade to move to a newer version, and downgrade to move to an older one"}
		case then-now > 1 || now-then > 1:
			return c, nil, &Problem{"to", fmt.Sprintf("%s has version %s: %s is more than one minor version away", name, from.VersionOf(kind), to.VersionOf(kind)), "move by one minor version at a time"}
		}
		after, moving = after.InRelease(name, to), append(moving, name)
		if msg, hint := after.skew(); msg != "" {
			return c, nil, &Problem{"to", fmt.Sprintf("components change their versions one after another, and in between %s", msg), hint}
		}
		if problems := after.emulationProblems(); len(problems) > 0 {
			return c, nil, &Problem{"to", problems[0].Msg, problems[0].Hint}
		}
	}
	if len(moving) == 0 {
		return c, nil, &Problem{"to", fmt.Sprintf("all of these components already have version %s", to.Minor), "name another version"}
	}
	if problems := after.Problems(); len(problems) > 0 { // such as flags and gates that the release does not have
		p := problems[0]
		return c, nil, &Problem{"to", fmt.Sprintf("with version %s, controlPlane.%s would be invalid: %s", to.Minor, p.Path, p.Msg), p.Hint}
	}
	return after, moving, nil
}

// After returns the config after an upgrade or downgrade that names no roles, or the problem that prevents it.
func (f Fault) After(c Config) (Config, *Problem) {
	noRole := func(Selector) []string { return nil }
	after, _, p := f.Moved(c, c.Named(f.Selectors(), noRole), "")
	return after, p
}

func isRelease(minor string) bool {
	_, ok := ReleaseOf(minor)
	return ok
}

// ReleaseNames returns the minor versions of all releases, newest first.
func ReleaseNames() (names []string) {
	for _, r := range Releases() {
		names = append(names, r.Minor)
	}
	return names
}

// ReleaseHint returns a hint for an unknown version. If version is a patch version, the hint is its minor version;
// otherwise the hint lists all versions.
func ReleaseHint(version string) string {
	for _, minor := range ReleaseNames() {
		if strings.HasPrefix(strings.TrimPrefix(version, "v"), minor) {
			return fmt.Sprintf("did you mean %q?", minor)
		}
	}
	return "one of " + strings.Join(ReleaseNames(), ", ")
}
