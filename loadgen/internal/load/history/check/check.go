package check

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Report is the result of checking a history.
type Report struct {
	// Violations are the violations found, in the order of the checks. The history passes if Violations and Unjudged
	// are empty.
	Violations []result.Violation
	// Linearizable is "yes", "no" or "unknown". It is "unknown" if a search took too long and no other search had the
	// result "no".
	Linearizable string
	// Unjudged has one line for each part of the history that could not be judged, with the reason.
	Unjudged []string
	// Hidden is the number of changes that watchers did not receive because they had to list again. CachedOld is the
	// number of cached reads that returned an older version than the client already knew. Kubernetes allows both.
	Hidden, CachedOld int64
	// UnknownHappened is the number of writes whose outcome was unknown to the client and whose effect was observed.
	UnknownHappened int64
	// Pictures show the first few registers that are not linearizable.
	Pictures []Picture
}

// Picture is an HTML page with the operations on a register, up to the first operation that fits no linear order.
type Picture struct {
	Register string
	HTML     []byte
}

const maxPictures = 3

// Check judges a history. limit is the time limit, greater than 0, for all searches for a linear order together. If a
// register is not linearizable, Check takes longer, to find the first wrong operation.
func Check(h *History, limit time.Duration) Report {
	s, wrong := observedStates(h)
	r := Report{Violations: wrong, UnknownHappened: s.unknownHappened()}
	missing, unjudged := lost(s)
	r.add(missing, unjudged)
	r.order(s, limit)
	old, cachedOld := backwards(s)
	r.CachedOld = cachedOld
	r.add(old, nil)
	happened := s.happened()
	for i := range h.Watchers {
		wrong, hidden, unjudged := watched(s, i, happened)
		r.Hidden += hidden
		r.add(wrong, unjudged)
	}
	return r
}

func (r *Report) add(wrong []result.Violation, unjudged []string) {
	r.Violations = append(r.Violations, wrong...)
	r.Unjudged = append(r.Unjudged, unjudged...)
}
