package generator

import "github.com/stormglass/stormglass/loadgen/result"

// MeasureMachine begins to measure what the machine does; end tells, and is nil where that is not known.
func MeasureMachine() (end func() *result.Machine) {
	before := readMachine()
	return func() *result.Machine { return readMachine().since(before) }
}

// machine is what the machine has done since it started, in seconds; ok is false where that is not known.
type machine struct {
	busy, own, steal float64
	cpuWait, ioWait  *float64 // nil: not known
	ok               bool
}

// since is what the machine did between an earlier reading and this one; nil: not known.
func (m machine) since(before machine) *result.Machine {
	if !m.ok || !before.ok {
		return nil
	}
	between := func(now, then *float64) *float64 {
		if now == nil || then == nil {
			return nil
		}
		return new(max(0, *now-*then))
	}
	return &result.Machine{
		// The kernel's counters may step back, and processes that nobody waited for are lost.
		BusySeconds: max(0, m.busy-before.busy), OwnSeconds: max(0, m.own-before.own), StealSeconds: max(0, m.steal-before.steal),
		CPUWaitSeconds: between(m.cpuWait, before.cpuWait), IOWaitSeconds: between(m.ioWait, before.ioWait),
	}
}
