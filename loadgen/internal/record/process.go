package record

import (
	"bytes"
	"math"
	"strconv"
)

// startJitter, in seconds, is how far two readings of one process' start time
// may lie apart: it is reckoned from the kernel's boot time, which moves with
// the clock.
const startJitter = 2

// SameProcess tells whether two values of process_start_time_seconds are of
// one process. Zero is unknown, and like no other.
func SameProcess(a, b float64) bool {
	return a != 0 && b != 0 && math.Abs(a-b) < startJitter
}

// processStart is the value of process_start_time_seconds, or 0.
func processStart(text []byte) float64 {
	const name = "\nprocess_start_time_seconds "
	i := bytes.Index(text, []byte(name))
	if i < 0 {
		return 0
	}
	line, _, _ := bytes.Cut(text[i+len(name):], []byte("\n"))
	v, err := strconv.ParseFloat(string(bytes.TrimSpace(line)), 64)
	if err != nil {
		return 0
	}
	return v
}
