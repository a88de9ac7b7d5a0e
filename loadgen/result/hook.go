package result

import "time"

// HookDir is the directory of the hooks' output in that of a run.
const HookDir = "hooks"

// Hook is one command that was run before or after a phase.
type Hook struct {
	Phase    string    `json:"phase"`
	When     string    `json:"when"`    // before or after
	Command  string    `json:"command"` // as a shell takes it
	Required bool      `json:"required"`
	Began    time.Time `json:"began"`
	Seconds  float64   `json:"seconds"`
	Output   string    `json:"output"` // file in the run's directory
	// Failed: how it failed, with the last line of its output; empty: it ended with exit code 0
	Failed string `json:"failed,omitempty"`
}
