package check

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// step is an operation as the search for a linear order has it.
type step struct {
	kind     stepKind
	expected uint64
	made     state // that a write makes, or that is read
	// perhaps is a write that need not have happened: wherever its version is
	// not the expected one, it does nothing.
	perhaps bool
}

type stepKind uint8

const (
	writes stepKind = iota
	reads
	conflicts // says: the version is not the expected one
	vanished  // says: there is no such object
)

// unseenVersion is that of a write which nobody saw the effect of.
const unseenVersion = math.MaxUint64

// horizon is the return of what never returned.
const horizon = math.MaxInt64

// register is what is known of it between two operations. anything is the
// state of a history that begins in its middle: what is seen first settles it.
type register struct {
	state
	anything bool
}

// model is a register whose writes compare and set. Since every write names
// the version it replaces and states tell their versions, a step has one
// outcome: the search branches on the order of operations only.
func model(begin register) porcupine.Model {
	return porcupine.Model{
		Init:              func() any { return begin },
		Step:              func(now, input, _ any) (bool, any) { return advance(now.(register), input.(step)) },
		Equal:             func(a, b any) bool { return a.(register) == b.(register) },
		Hash:              func(s any) uint64 { return s.(register).version * 0x9e3779b97f4a7c15 },
		DescribeOperation: func(input, _ any) string { return input.(step).String() },
		DescribeState: func(s any) string {
			if s.(register).anything {
				return "anything"
			}
			return s.(register).String()
		},
	}
}

// advance is one step of a register.
func advance(now register, do step) (bool, register) {
	after := register{state: do.made}
	switch do.kind {
	case reads:
		return now.anything || now.state == do.made, after
	case conflicts:
		return now.anything || now.version != do.expected, now
	case vanished:
		return now.anything || now.version == 0, now
	}
	if (now.anything || now.version == do.expected) && do.made.version > do.expected {
		return true, after
	}
	return do.perhaps, now
}

func (s state) String() string {
	switch s.version {
	case 0:
		return "absent"
	case unseenVersion:
		return fmt.Sprintf("%d @ ?", s.value)
	}
	return fmt.Sprintf("%s @ %d", valueText(s.value), s.version)
}

func (s step) String() string {
	switch s.kind {
	case reads:
		return "read " + s.made.String()
	case conflicts:
		return fmt.Sprintf("write over %d: conflict", s.expected)
	case vanished:
		return fmt.Sprintf("write over %d: not found", s.expected)
	}
	text := fmt.Sprintf("write over %d: %s", s.expected, s.made)
	if s.perhaps {
		text += " (perhaps)"
	}
	return text
}

// steps are a register's operations for the search.
//
//   - A write whose value was seen did happen, before it was first seen,
//     whatever its client knows of it. That bounds those of unknown outcome,
//     which would else be open to the end of the history.
//   - A write of unknown outcome whose value nobody saw cannot be followed by
//     any other: a successor would have to name its version, which nobody
//     knows. So if it happened it was the last, over the newest version that
//     there is; all such are one write that perhaps happened.
//   - What was refused for other reasons, reads without an answer and cached
//     reads say nothing of the order.
func steps(s *states, number int) []porcupine.Operation {
	var all []porcupine.Operation
	newest := s.newest(number)
	var unseen *porcupine.Operation
	add := func(o Operation, do step, end time.Duration) {
		all = append(all, porcupine.Operation{
			ClientId: max(o.Client, 0), Input: do, Call: int64(o.Call), Return: int64(max(end, o.Call)),
		})
	}
	for _, o := range s.h.Operations {
		if o.Register != number {
			continue
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
					Input: step{kind: writes, expected: newest, made: state{unseenVersion, o.Value}, perhaps: true},
				}
			}
		}
	}
	if unseen != nil {
		all = append(all, *unseen)
	}
	return all
}
