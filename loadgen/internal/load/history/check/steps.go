package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// steps are a register's operations for the search, in the order of their
// calls.
//
//   - A write whose value was seen did happen, before it was first seen,
//     regardless of what its client knows. That bounds writes of unknown
//     outcome, which would otherwise be open to the end of the history.
//   - A write of unknown outcome whose value was never read cannot be followed by
//     any other: a successor would have to name its version, which no client
//     knows. So if it happened it was the last, over the newest version that
//     there is, and after the last answer that tells a state; all such are one
//     write that perhaps happened.
//   - What was refused for other reasons, reads without an answer and cached
//     reads say nothing of the order.
func steps(s *states, operations []Operation, newest uint64) []porcupine.Operation {
	var all []porcupine.Operation
	var unseen *porcupine.Operation
	var told time.Duration // the last call that told a state
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

// segment is a part of a register's history, and the state that it begins in.
type segment struct {
	begin register
	all   []porcupine.Operation
}

// segments cuts a history wherever nothing is under way: the state there is known, of the write with the highest
// version. The history is linearizable if and only if each part is. A search takes memory by the square of a part.
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
