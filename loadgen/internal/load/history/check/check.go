package check

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Report holds the violations found in a history.
type Report struct {
	// Violations are in the order of the checks. The history passes if Violations and Unjudged are empty.
	Violations []result.Violation
	// Linearizable is "yes", "no", or "unknown" if a search took too long and no register is wrong.
	Linearizable string
	// Unjudged lists, one line each, what could not be judged.
	Unjudged []string
	// Hidden is the number of changes that relists skipped, and CachedOld the number of cached reads that were older than what
	// the client knew. Both are allowed.
	Hidden, CachedOld int64
	// UnknownHappened is the number of writes of unknown outcome whose effect was observed.
	UnknownHappened int64
	// Pictures shows the first few registers that are not linearizable.
	Pictures []Picture
}

// Picture is an HTML page with the operations up to the first one that fits no linear order.
type Picture struct {
	Register string
	HTML     []byte
}

const mostPictures = 3

// Check judges a history. The searches for a linear order take at most limit, which must be positive, in total. To find the
// first wrong operation, Check may take longer.
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
