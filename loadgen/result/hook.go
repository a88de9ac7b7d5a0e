package result

import "time"

// HookDir is the directory, in the run directory, for the output of hooks.
const HookDir = "hooks"

// Hook is one command that ran before or after a phase.
type Hook struct {
	Phase    string    `json:"phase"`
	When     string    `json:"when"` // "before" or "after" the phase
	Command  string    `json:"command"`
	Required bool      `json:"required"` // a failure of the command ends the run
	Began    time.Time `json:"began"`
	Seconds  float64   `json:"seconds"`          // how long the command ran
	Output   string    `json:"output"`           // path of the command's output in the run directory
	Failed   string    `json:"failed,omitempty"` // how the command failed, and its last line of output
}
