package gate

import (
	"fmt"

	"github.com/stormglass/stormglass/loadgen/result"
)

// steered describes how the user changed a phase while it ran, or returns "" if the user did not change it.
func steered(p result.Phase) string {
	switch {
	case p.EndedEarly:
		return fmt.Sprintf("phase %s was ended early by the user, after %s", p.Name, show("seconds", p.Seconds()))
	case p.PausedSeconds > 0:
		return fmt.Sprintf("load was paused by the user for %s in phase %s", show("seconds", p.PausedSeconds), p.Name)
	}
	return ""
}

// SteeredNotes returns a one-line note on each phase that the user changed while it ran.
func SteeredNotes(phases []result.Phase) (notes []string) {
	for _, p := range phases {
		if why := steered(p); why != "" {
			notes = append(notes, why+": gates that cover this phase are not judged")
		}
	}
	return notes
}

// steered describes how the user changed one of the phases in which the reading was measured. It returns "" if the user
// changed none of them.
func (e evidence) steered(r reading) string {
	for _, name := range r.measuredIn {
		if why := steered(e.phases[name]); why != "" {
			return why
		}
	}
	return ""
}
