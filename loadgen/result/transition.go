package result

import "fmt"

// Transition holds the times that objects took from one state to another, measured when events arrived at the
// generator's watch.
type Transition struct {
	Name     string `json:"name"` // name of the transition in the scenario
	Resource string `json:"resource"`
	From     string `json:"from"`
	To       string `json:"to"`
	// Began: objects that reached the first state, including `open` and `gone`
	Began      int64 `json:"began"`
	Open       int64 `json:"open,omitempty"`       // objects that had not reached the second state when the run ended
	Gone       int64 `json:"gone,omitempty"`       // objects deleted before they reached the second state; not in `latency`
	Unmeasured int64 `json:"unmeasured,omitempty"` // objects seen only in a list; not in `began`
	Relists    int64 `json:"relists,omitempty"`    // lists after a lost watch
	// Latency: time between the states; open objects count as longer than all others (clamped)
	Latency  Latency `json:"latency"`
	External Latency `json:"external"`
	// SoFar: like latency, but open objects count with their time until the end
	SoFar         *Latency `json:"soFar,omitempty"`
	ExternalSoFar *Latency `json:"externalSoFar,omitempty"` // `soFar` without the generator's stalls
}

// checkTransitions returns an error if a transition occurs twice in the phase, or if its counts do not add up.
func (p Phase) checkTransitions() error {
	once := map[string]bool{}
	for _, t := range p.Transitions {
		if once[t.Name] {
			return fmt.Errorf("transition %s appears twice", t.Name)
		}
		once[t.Name] = true
		switch {
		case t.Latency.Count+t.Gone != t.Began:
			return fmt.Errorf("transition %s: %d latencies and %d gone objects do not add up to %d begun", t.Name, t.Latency.Count, t.Gone, t.Began)
		case t.Open > t.Latency.Count:
			return fmt.Errorf("transition %s: %d objects are open, but it has only %d latencies", t.Name, t.Open, t.Latency.Count)
		case (t.Open > 0) != (t.SoFar != nil):
			return fmt.Errorf("transition %s: soFar must be set if objects are open, and only then (open is %d)", t.Name, t.Open)
		}
	}
	return nil
}
