package archive

import "math"

// startJitter, in seconds, is how far two readings of one process' start time
// may lie apart: it is reckoned from the kernel's boot time, which moves with
// the clock.
const startJitter = 2

// SameProcess reports whether two values of process_start_time_seconds are of
// one process. Zero is unknown, and like no other.
func SameProcess(a, b float64) bool {
	return a != 0 && b != 0 && math.Abs(a-b) < startJitter
}
