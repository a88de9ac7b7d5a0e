package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/stormglass/stormglass/internal/shell"
)

// Hook is a command that runs on the generator's machine before or after a phase.
type Hook struct {
	// Run: program and arguments, such as [sh, -c, "kubectl get nodes | wc -l"]; no shell is added
	Run    []string `yaml:"run"`
	Within Duration `yaml:"within,omitempty" zero:"1m"` // time limit of the command, default 1m
	// Required: true (default): the run ends if the command fails; false: the run only records the failure
	Required *bool `yaml:"required,omitempty"`
}

const defaultHook = time.Minute

// String returns the command on one line, quoted for a shell. Words with non-printable characters are quoted as in Go,
// so that nothing is hidden from the user who approves the command.
func (h *Hook) String() string {
	var words []string
	for _, w := range h.Run {
		if strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsPrint(r) }) {
			words = append(words, strconv.Quote(w))
			continue
		}
		words = append(words, shell.Quote(w))
	}
	return strings.Join(words, " ")
}

// MustPass reports whether a failure of the command ends the run.
func (h *Hook) MustPass() bool { return h.Required == nil || *h.Required }

// PlacedHook is a hook with its location in the scenario.
type PlacedHook struct {
	*Hook
	// Phase is the phase's name. When is "before" or "after".
	Phase, When string
	// Path is the path of the hook in the scenario.
	Path string
}

// String returns the hook in the form "before storm: COMMAND".
func (h PlacedHook) String() string { return h.When + " " + h.Phase + ": " + h.Hook.String() }

// Hooks lists the hooks of all phases in the order in which they run.
func (s *Scenario) Hooks() []PlacedHook {
	var all []PlacedHook
	for i := range s.Phases {
		all = append(all, s.Phases[i].hooks(i, "before")...)
		all = append(all, s.Phases[i].hooks(i, "after")...)
	}
	return all
}

// hooks returns the hooks of the phase, which has index i. `when` is "before" or "after".
func (p *Phase) hooks(i int, when string) (all []PlacedHook) {
	hooks := p.Before
	if when == "after" {
		hooks = p.After
	}
	for j := range hooks {
		all = append(all, PlacedHook{&hooks[j], p.Name, when, fmt.Sprintf("phases[%d].%s[%d]", i, when, j)})
	}
	return all
}

// DropHooks removes all hooks from the scenario and its variants.
func (s *Scenario) DropHooks() {
	for _, v := range append([]*Scenario{s}, s.variants...) {
		for i := range v.Phases {
			v.Phases[i].Before, v.Phases[i].After = nil, nil
		}
	}
}

func (s *Scenario) defaultHooks() {
	for _, h := range s.Hooks() {
		orDefault(&h.Within, Duration(defaultHook))
	}
}

func (v *validator) hooks() {
	for _, h := range v.s.Hooks() {
		if len(h.Run) == 0 || strings.TrimSpace(h.Run[0]) == "" {
			v.fail(h.Path+".run", `write run: [sh, -c, "..."]`, "the hook has no command")
		}
		if d := h.Within.D(); d < minTimeout || d > maxPhase {
			v.fail(h.Path+".within", fmt.Sprintf("from %s to 24h", Duration(minTimeout)), "%s is out of bounds", h.Within)
		}
	}
}
