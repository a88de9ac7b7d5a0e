package workers

import "time"

// Pause makes all workers stop sending new requests at the time `at`, by the coordinator's clock.
func (f *Fleet) Pause(at time.Time) { f.tellAll(call{Verb: verbPause, At: at}) }

// Resume makes all workers send requests again from the time `at`, by the coordinator's clock.
func (f *Fleet) Resume(at time.Time) { f.tellAll(call{Verb: verbResume, At: at}) }

// tellAll sends a call to all workers and expects no reply.
func (f *Fleet) tellAll(c call) {
	if f == nil {
		return
	}
	for _, m := range f.joined() {
		m.post(message{Call: &c})
	}
}
