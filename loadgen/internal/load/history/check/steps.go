package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// steps returns a register's operations for the search, in the order of their calls. These rules apply:
//
//   - If the value of a write was observed, the write ended before the first observation.
//     This also gives a write of unknown outcome an end.
//   - If the value of a write of unknown outcome was never observed, no write can follow it, because no client knows
//     its version. So if it happened, it was the last write, after the last response that shows a state. All such
//     writes count as one write that perhaps happened.
//   - Cached reads, reads without a response, and operations with the outcome Refused are left out, because they do not
//     restrict the order.
func steps(s *states, operations []Operation, newest uint64) []porcupine.Operation {
	var all []porcupine.Operation
	var unseen *porcupine.Operation
	var told time.Duration // the call time of the last operation that observed a state
	add := func(o Operation, do step, end time.Duration) {
		all = append(all, porcupine.Operation{
			ClientId: max(o.Client, 0), Input: do, Call: int64(o.Call), Return: int64(max(end, o.Call)),
		})
	}
	for _, o := range operations {
		if o.Outcome == OK && o.Kind != CachedRead {
			told = max(told, o.Call)
		}
		switch {
		case o.Kind == Read && o.Outcome == OK:
			add(o, step{kind: reads, made: state{o.Version, o.Value}}, o.Return)
		case o.Kind != Write:
		case o.Outcome == Conflict:
			add(o, step{kind: conflicts, expected: o.Expected}, o.Return)
		case o.Outcome == Absent:
			add(o, step{kind: vanished}, o.Return)
		case o.Outcome == OK:
			end := o.Return
			if v, ok := s.byValue[o.Value]; ok {
				end = min(end, v.at)
			}
			add(o, step{kind: writes, expected: o.Expected, made: state{o.Version, o.Value}}, end)
		case o.Outcome == Unknown:
			if v, ok := s.byValue[o.Value]; ok {
				add(o, step{kind: writes, expected: o.Expected, made: v.state}, v.at)
			} else if o.Expected == newest && (unseen == nil || int64(o.Call) < unseen.Call) {
				unseen = &porcupine.Operation{
					ClientId: max(o.Client, 0), Call: int64(o.Call), Return: horizon,
					Input: step{kind: writes, expected: newest, made: state{unobservedVersion, o.Value}, perhaps: true},
				}
			}
		}
	}
	if unseen != nil {
		unseen.Call = max(unseen.Call, int64(told))
		all = append(all, *unseen)
	}
	slices.SortStableFunc(all, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return all
}

// segment is a part of a register's history. begin is the register's state at the start of the part.
type segment struct {
	begin register
	all   []porcupine.Operation
}

// segments splits a register's history at each time at which no operation is in flight. The state at that time is
// known: it was made by the write with the highest version so far. The history is linearizable if and only if each part
// is linearizable. The memory of a search grows with the square of the length of the part.
func segments(begin register, all []porcupine.Operation) []segment {
	var parts []segment
	from, open, now := 0, int64(-1), begin
	for i, o := range all {
		if o.Call > open && i > from {
			parts = append(parts, segment{begin, all[from:i]})
			from, begin = i, now
		}
		open = max(open, o.Return)
		if do := o.Input.(step); do.kind == writes && do.made.version > now.version {
			now.state = do.made
		}
	}
	if from < len(all) {
		parts = append(parts, segment{begin, all[from:]})
	}
	return parts
}
