package workers

import "time"

// Pause stops the arrivals of all workers' loads at a time by this machine's clock.
func (f *Fleet) Pause(at time.Time) { f.tellAll(call{Verb: verbPause, At: at}) }

// Resume lets the arrivals continue at a time by this machine's clock.
func (f *Fleet) Resume(at time.Time) { f.tellAll(call{Verb: verbResume, At: at}) }

// tellAll sends a call without a reply to all workers.
func (f *Fleet) tellAll(c call) {
	if f == nil {
		return
	}
	for _, m := range f.joined() {
		m.post(message{Call: &c})
	}
}
