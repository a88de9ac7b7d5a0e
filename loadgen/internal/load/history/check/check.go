package check

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Report holds the violations found in a history.
type Report struct {
	// Violations in the order of the checks. A pass needs Unjudged to be empty too.
	Violations []result.Violation
	// Linearizable: "yes", "no", or "unknown" when a search took too long and no register is wrong.
	Linearizable string
	// Unjudged says in a line each what could not be judged.
	Unjudged []string
	// Hidden changes were jumped over by relists, CachedOld reads were older than known. Both are allowed.
	Hidden, CachedOld int64
	// UnknownHappened writes of unknown outcome were seen.
	UnknownHappened int64
	// Pictures of registers that are not linearizable, the first few.
	Pictures []Picture
}

// Picture is a page with the operations around the first one that fits no order.
type Picture struct {
	Register string
	HTML     []byte
}

const mostPictures = 3

// Check judges a history. The searches for a linear order take at most limit (over 0) together, and longer only to
// find the first wrong operation.
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
