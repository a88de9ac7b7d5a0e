package check

import (
	"fmt"

	"github.com/stormglass/stormglass/loadgen/result"
)

// lost finds acknowledged writes that are not in the chain of versions that leads to a register's final state. Such a
// write was undone, or another write replaced the same version. lost cannot judge a register that has no final read.
func lost(s *states) (wrong []result.Violation, unjudged []string) {
	final := make([]*Operation, len(s.h.Registers))
	acknowledged := make([][]*Operation, len(s.h.Registers))
	for i := range s.h.Operations {
		o := &s.h.Operations[i]
		if o.Outcome != OK {
			continue
		}
		switch {
		case o.Kind == Write:
			acknowledged[o.Register] = append(acknowledged[o.Register], o)
		case o.Kind == Read && o.Final && (final[o.Register] == nil || o.Call >= final[o.Register].Call):
			final[o.Register] = o
		}
	}
	for i, f := range final {
		if f == nil {
			unjudged = append(unjudged, fmt.Sprintf("%s: its final state could not be read", s.name(i)))
			continue
		}
		chain, low := s.chain(i, state{f.Version, f.Value})
		unfollowed := 0
		for _, w := range acknowledged[i] {
			switch {
			case chain[w.Version] == w.Value:
			case w.Version <= low:
				unfollowed++
			default:
				wrong = append(wrong, result.Violation{
					Kind: result.LostWrite, Register: s.name(i), Client: &w.Client, Version: w.Version, AtSecond: w.Return.Seconds(),
					Detail: fmt.Sprintf("the write of value %d over version %d was acknowledged as version %d, but the final state (version %d, value %s) does not derive from this write",
						w.Value, w.Expected, w.Version, f.Version, valueText(f.Value)),
				})
			}
		}
		if unfollowed > 0 {
			unjudged = append(unjudged, fmt.Sprintf("%s: %d acknowledged writes could not be checked for loss, because the final state could be traced back only to version %d", s.name(i), unfollowed, low))
		}
	}
	return wrong, unjudged
}

// chain follows the writes that led to a state back to the first version of the register. It returns the values of
// these writes by version. The values are complete for versions above `low`. `low` is the first version, or the version
// at which chain stopped because it did not find the write or the earlier state.
func (s *states) chain(register int, end state) (values map[uint64]uint64, low uint64) {
	values = map[uint64]uint64{}
	first := s.h.Registers[register].Version
	for end.version > first {
		values[end.version] = end.value
		i, ok := s.writes[end.value]
		if !ok {
			return values, end.version
		}
		w := s.h.Operations[i]
		if w.Register != register || w.Expected >= end.version {
			return values, end.version
		}
		before, ok := s.replaced(w)
		if w.Expected > first && !ok {
			return values, w.Expected
		}
		end = state{w.Expected, before.value}
	}
	return values, first
}
