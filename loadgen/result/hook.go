package result

import "time"

// HookDir is the directory, in the run directory, for the output of hooks.
const HookDir = "hooks"

// Hook is one command that ran before or after a phase.
type Hook struct {
	Phase    string    `json:"phase"`
	When     string    `json:"when"`     // "before" or "after"
	Command  string    `json:"command"`  // in shell syntax
	Required bool      `json:"required"` // the run ends if the command fails
	Began    time.Time `json:"began"`    // when the command started
	Seconds  float64   `json:"seconds"`  // how long the command ran
	Output   string    `json:"output"`   // path in the run's directory
	// Failed: how the command failed, and its last line of output
	Failed string `json:"failed,omitempty"`
}
