package samples

import "time"

// Width of a slot, where the machine runs the recorder in time.
const Width = 100 * time.Millisecond

// Slot is a line of pulse.jsonl: what the loads did in a stretch of time.
// Loads that did nothing in it are left out, and so is a slot without any.
type Slot struct {
	Begin    int64                  `json:"t"`                  // Unix milliseconds
	Millis   int64                  `json:"ms"`                 // its length
	Requests map[string]RequestSlot `json:"requests,omitempty"` // by load
	Streams  map[string]StreamSlot  `json:"streams,omitempty"`  // by load; the simulated nodes' are Nodes
}

// Nodes is the name under which simulated nodes count their watches: no load is
// called so.
const Nodes = "simulated nodes"

// From is when the slot begins.
func (s Slot) From() time.Time { return time.UnixMilli(s.Begin).UTC() }

// Until is when it ends.
func (s Slot) Until() time.Time { return time.UnixMilli(s.Begin + s.Millis).UTC() }

// RequestSlot counts the requests of one load that ended in a slot.
type RequestSlot struct {
	Succeeded int64            `json:"ok,omitempty"`      // answered with 2xx
	Failed    map[string]int64 `json:"failed,omitempty"`  // by outcome
	Unsent    int64            `json:"unsent,omitempty"`  // arrivals that found no free slot
	Slowest   float64          `json:"slowest,omitempty"` // seconds since the intended start
	// External is the slowest without the generator's own delay; nil in runs that
	// were recorded before it was.
	External *float64 `json:"external,omitempty"`
}

// SlowestExternal is the slowest request without the generator's own delay, as far
// as that is known.
func (s RequestSlot) SlowestExternal() float64 {
	if s.External == nil {
		return s.Slowest
	}
	return *s.External
}

// Failures is the number of requests that failed.
func (s RequestSlot) Failures() int64 {
	var n int64
	for _, f := range s.Failed {
		n += f
	}
	return n
}

func (s RequestSlot) empty() bool { return s.Succeeded == 0 && len(s.Failed) == 0 && s.Unsent == 0 }

// StreamSlot counts the events of one load's watches in a slot.
type StreamSlot struct {
	Breaks    int64 `json:"breaks,omitempty"`    // ended out of turn
	Relists   int64 `json:"relists,omitempty"`   // had to list again
	Delivered int64 `json:"delivered,omitempty"` // first deliveries of acknowledged writes
}
