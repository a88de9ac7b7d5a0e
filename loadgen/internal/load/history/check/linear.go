package check

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"
)

// step is an operation, as input to the search for a linear order.
type step struct {
	kind     stepKind
	expected uint64
	made     state // the state that a write makes or a read returns
	// perhaps marks a write that the server may not have executed. If the register does not have the expected version
	// when the search tries the write, the write has no effect.
	perhaps bool
}

type stepKind uint8

const (
	writes stepKind = iota
	reads
	conflicts // a write that found another version than the expected one
	vanished  // a write that found no object
)

// unobservedVersion is the version of a write whose effect was not observed.
const unobservedVersion = math.MaxUint64

// horizon is the return time of an operation that never returned.
const horizon = math.MaxInt64

// register is the state of a register during the search. If `anything` is true, the state is unknown, and every
// operation is possible.
type register struct {
	state
	anything bool
}

// model returns the porcupine model of a register with compare-and-set. Each step has exactly one outcome, so the
// search branches only on the order of the steps.
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
	case unobservedVersion:
		return fmt.Sprintf("%d @ ?", s.value)
	}
	return fmt.Sprintf("%s @ %d", valueText(s.value), s.version)
}

func (s step) String() string {
	switch s.kind {
	case reads:
		return "read " + s.made.String()
	case conflicts:
		return fmt.Sprintf("write that expected version %d: conflict", s.expected)
	case vanished:
		return fmt.Sprintf("write that expected version %d: not found", s.expected)
	}
	text := fmt.Sprintf("write that expected version %d: %s", s.expected, s.made)
	if s.perhaps {
		text += " (perhaps)"
	}
	return text
}
