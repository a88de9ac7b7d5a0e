package result

import "fmt"

// Transition is how long objects took from one state to another, as arrivals at the generator's own watch: of those
// that got to the first state in the phase.
type Transition struct {
	Name     string `json:"name"` // in the scenario
	Resource string `json:"resource"`
	From     string `json:"from"`
	To       string `json:"to"`
	Began    int64  `json:"began"` // objects that got to From; Open, Gone and those that got to To
	// Open: objects that are there at the end and have not got to To
	Open int64 `json:"open,omitempty"`
	Gone int64 `json:"gone,omitempty"` // deleted before To; not in the distributions
	// Unmeasured: objects that a list brought and no event; not in Began
	Unmeasured int64 `json:"unmeasured,omitempty"`
	Relists    int64 `json:"relists,omitempty"` // after a lost watch: what happened in between is seen late
	// Latency: open objects are counted as longer than all others (clamped)
	Latency  Latency `json:"latency"`
	External Latency `json:"external"` // Latency without the generator's stalls
	// SoFar: Latency with open objects counted by their time until the end; absent without any
	SoFar         *Latency `json:"soFar,omitempty"`
	ExternalSoFar *Latency `json:"externalSoFar,omitempty"` // the same of External
}

// checkTransitions reports whether the transitions of a phase add up.
func (p Phase) checkTransitions() error {
	once := map[string]bool{}
	for _, t := range p.Transitions {
		if once[t.Name] {
			return fmt.Errorf("transition %s is there twice", t.Name)
		}
		once[t.Name] = true
		if t.Latency.Count+t.Gone != t.Began || t.Open > t.Latency.Count || (t.Open > 0) != (t.SoFar != nil) {
			return fmt.Errorf("transition %s: its %d objects do not add up", t.Name, t.Began)
		}
	}
	return nil
}
