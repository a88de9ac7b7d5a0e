package result

import "fmt"

// Transition is the time that objects took from one state to another, measured by the arrival of events at the
// generator's own watch. It covers the objects that reached the first state in the phase.
type Transition struct {
	Name     string `json:"name"` // name in the scenario
	Resource string `json:"resource"`
	From     string `json:"from"`
	To       string `json:"to"`
	Began    int64  `json:"began"` // objects that reached the first state: the sum of open, gone and those that reached the second
	// Open: objects that exist at the end and have not reached the second state
	Open int64 `json:"open,omitempty"`
	Gone int64 `json:"gone,omitempty"` // deleted before the second state; not in the distributions
	// Unmeasured: objects that were seen only in a list, without an event; not in began
	Unmeasured int64 `json:"unmeasured,omitempty"`
	Relists    int64 `json:"relists,omitempty"` // lists after a lost watch; changes in between are observed late
	// Latency: time between the states; open objects count as longer than all others (clamped)
	Latency  Latency `json:"latency"`
	External Latency `json:"external"` // latency without the generator's stalls
	// SoFar: latency with open objects counted by their time until the end; absent without open objects
	SoFar         *Latency `json:"soFar,omitempty"`
	ExternalSoFar *Latency `json:"externalSoFar,omitempty"` // the same for external
}

// checkTransitions returns an error if a transition occurs twice in the phase, or if its counts do not add up.
func (p Phase) checkTransitions() error {
	once := map[string]bool{}
	for _, t := range p.Transitions {
		if once[t.Name] {
			return fmt.Errorf("transition %s appears twice", t.Name)
		}
		once[t.Name] = true
		if t.Latency.Count+t.Gone != t.Began || t.Open > t.Latency.Count || (t.Open > 0) != (t.SoFar != nil) {
			return fmt.Errorf("transition %s: its %d objects do not add up", t.Name, t.Began)
		}
	}
	return nil
}
