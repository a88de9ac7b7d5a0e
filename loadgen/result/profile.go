package result

import "time"

// ProfileDir is the directory of profiles in that of a run.
const ProfileDir = "profiles"

// Profile is one pprof profile of a component in a phase.
type Profile struct {
	Phase     string    `json:"phase"`
	Component string    `json:"component"`         // as kube-apiserver-0, or loadgen
	Kind      string    `json:"kind"`              // cpu, heap, goroutine, allocs, mutex or block
	Began     time.Time `json:"began"`             // when it was asked for
	Seconds   float64   `json:"seconds,omitempty"` // of sampling, of cpu
	File      string    `json:"file,omitempty"`    // in the run's directory; empty: there is none
	Bytes     int64     `json:"bytes,omitempty"`   // size of the file
	Lost      string    `json:"lost,omitempty"`    // why there is none
}
