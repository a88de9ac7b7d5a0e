package result

import "time"

// ProfileDir is the directory, in the run directory, for pprof profiles.
const ProfileDir = "profiles"

// Profile is one pprof profile of a component in a phase.
type Profile struct {
	Phase     string    `json:"phase"`
	Component string    `json:"component"` // instance, such as kube-apiserver-0, or loadgen
	Kind      string    `json:"kind"`      // cpu, heap, goroutine, allocs, mutex or block
	Began     time.Time `json:"began"`
	Seconds   float64   `json:"seconds,omitempty"` // sampling time of a CPU profile
	File      string    `json:"file,omitempty"`    // path in the run directory
	Bytes     int64     `json:"bytes,omitempty"`
	Lost      string    `json:"lost,omitempty"` // why the profile is missing
}
