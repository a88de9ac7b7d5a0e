package check

import (
	"slices"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// seeds is the number of histories of each test. A failure names its seed.
const seeds = 200

func TestSoundHistoriesAreNotAccused(t *testing.T) {
	for seed := range uint64(seeds) {
		s := simulate(seed, nil)
		if r := Check(&s.h, enough); len(r.Violations) > 0 || len(r.Unjudged) > 0 || r.Linearizable != "yes" {
			t.Errorf("seed %d: linearizable: %s, violations %+v, unjudged %q", seed, r.Linearizable, r.Violations, r.Unjudged)
		}
	}
}

// If a store breaks one guarantee, a violation is always found.
func TestFaultsOfTheStore(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*simulation, *Operation, bool) bool
		want  string
	}{
		"an acknowledged write is lost": {func(s *simulation, o *Operation, happens bool) bool {
			if o.Kind != Write || o.Outcome != OK || !happens || o.Expected != s.store[o.Register].version {
				return false
			}
			s.version++
			o.Version = s.version
			return true
		}, result.LostWrite},
		"a write over an old version": {func(s *simulation, o *Operation, happens bool) bool {
			old := s.before[o.Register]
			if o.Kind != Write || o.Outcome != OK || !happens || len(old) < 2 || !s.acknowledged(old[len(old)-1]) {
				return false
			}
			o.Expected = old[len(old)-2].version
			s.put(o, o.Call)
			o.Version = s.version
			return true
		}, result.LostWrite},
		"an old consistent read": {func(s *simulation, o *Operation, happens bool) bool {
			old := s.before[o.Register]
			if o.Kind != Read || o.Outcome != OK || !happens || len(old) < 2 || !s.returned(old[len(old)-1], o) {
				return false
			}
			o.Version, o.Value = old[len(old)-2].version, old[len(old)-2].value
			return true
		}, result.NotLinearizable},
		"a refused write happens": {func(s *simulation, o *Operation, happens bool) bool {
			if o.Kind != Write || o.Outcome != OK || !happens || o.Expected != s.store[o.Register].version {
				return false
			}
			s.put(o, o.Return)
			o.Outcome = Refused
			return true
		}, result.Phantom},
		"a conflict of nothing": {func(s *simulation, o *Operation, happens bool) bool {
			now := s.store[o.Register]
			if o.Kind != Write || o.Outcome != OK || !happens || o.Expected != now.version || now.value > 0 && !s.returned(now, o) {
				return false
			}
			o.Outcome = Conflict
			return true
		}, result.NotLinearizable},
		"a read of another register's value": {func(s *simulation, o *Operation, happens bool) bool {
			other := s.store[1-o.Register]
			if o.Kind == Write || o.Outcome != OK || !happens || other.value == 0 {
				return false
			}
			o.Version, o.Value = other.version, other.value
			return true
		}, result.Phantom},
	} {
		t.Run(name, func(t *testing.T) {
			made := 0
			for seed := range uint64(seeds) {
				s := simulate(seed, c.fault)
				if s.broken == nil || s.broken.Outcome == Conflict && s.overlaps(s.broken) {
					continue // no operation suited the fault, or another write may explain the conflict
				}
				made++
				if r := Check(&s.h, enough); !slices.Contains(kinds(r.Violations), c.want) {
					t.Errorf("seed %d: want %s, got %+v; unjudged %q", seed, c.want, kinds(r.Violations), r.Unjudged)
				}
			}
			if made < seeds/10 {
				t.Errorf("only %d of %d histories have the fault", made, seeds)
			}
		})
	}
}

// If a watch breaks one guarantee, this violation and no other is always found.
func TestFaultsOfWatches(t *testing.T) {
	for kind, spoil := range map[string]func(all []Entry, i, next int) []Entry{
		result.MissedEvent:    func(all []Entry, i, _ int) []Entry { return slices.Delete(all, i, i+1) },
		result.DoubledEvent:   func(all []Entry, i, next int) []Entry { return slices.Insert(all, next, all[i]) },
		result.ReorderedEvent: func(all []Entry, i, next int) []Entry { all[i], all[next] = all[next], all[i]; return all },
	} {
		t.Run(kind, func(t *testing.T) {
			for seed := range uint64(seeds) {
				s := simulate(seed, nil)
				w := &s.h.Watchers[s.IntN(simWatchers)]
				var events []int
				for i, e := range w.Entries {
					// An event that only one watcher saw cannot be missed by others.
					if e.Kind == Changed && s.acknowledged(state{e.Version, e.Value}) {
						events = append(events, i)
					}
				}
				k := s.IntN(len(events) - 1)
				i, next := events[k], events[k+1]
				if kind != result.DoubledEvent && slices.ContainsFunc(w.Entries[i:next], func(e Entry) bool { return e.Kind == Listed }) {
					continue // the list hides the fault, because it skips the changes before it
				}
				w.Entries = spoil(w.Entries, i, next)
				if r := Check(&s.h, enough); !slices.Equal(kinds(r.Violations), []string{kind}) {
					t.Errorf("seed %d: %+v", seed, r.Violations)
				}
			}
		})
	}
}

// acknowledged reports whether the write that made a state was acknowledged.
func (s *simulation) acknowledged(is state) bool {
	return slices.ContainsFunc(s.h.Operations, func(o Operation) bool {
		return o.Kind == Write && o.Outcome == OK && o.Version == is.version
	})
}

// returned reports whether a client knew a state before an operation was called.
func (s *simulation) returned(is state, before *Operation) bool {
	return slices.ContainsFunc(s.h.Operations, func(o Operation) bool {
		return o.Outcome == OK && o.Version == is.version && o.Return < before.Call
	})
}

// overlaps reports whether another write of the register overlaps o. A write of
// unknown outcome never ends.
func (s *simulation) overlaps(o *Operation) bool {
	return slices.ContainsFunc(s.h.Operations, func(p Operation) bool {
		return p.Register == o.Register && p.Kind == Write && p.Value != o.Value && p.Call <= o.Return && (p.Return >= o.Call || p.Outcome == Unknown)
	})
}
