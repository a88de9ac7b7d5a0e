package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Report is what is wrong with a history.
type Report struct {
	// Violations in the order of the checks. Empty is a pass only if Unjudged
	// is empty too.
	Violations []result.Violation
	// Linearizable: "yes", "no", or "unknown" when the search of some register
	// took too long and no other is wrong.
	Linearizable string
	// Unjudged says in a line each what could not be judged.
	Unjudged []string
	// Hidden changes were jumped over by relists, CachedOld reads from a cache
	// were older than what their client knew. Both are allowed.
	Hidden, CachedOld int64
	// Pictures of registers that are not linearizable, the first few.
	Pictures []Picture
}

// Picture is a page that shows the operations around the first one that fits
// no order.
type Picture struct {
	Register string
	HTML     []byte
}

// mostPictures bounds them: one is what a person looks at.
const mostPictures = 3

// Check judges a history. The searches for a linear order take at most limit
// together, which must be over 0; everything else is quick, but for finding the
// first operation that is wrong where there is one.
func Check(h *History, limit time.Duration) Report {
	s, wrong := seen(h)
	r := Report{Violations: wrong}
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

// order judges each register by itself: a history is linearizable if and only
// if each object's is (Herlihy and Wing 1990, theorem 1).
func (r *Report) order(s *states, limit time.Duration) {
	r.Linearizable = "yes"
	end := time.Now().Add(limit)
	for i, at := range s.h.Registers {
		begin := register{state: state{at.Version, at.Value}}
		all := steps(s, i)
		// What one register leaves over is the next ones'.
		share := time.Until(end) / time.Duration(len(s.h.Registers)-i)
		switch search(begin, all, share) {
		case porcupine.Unknown:
			r.Unjudged = append(r.Unjudged, fmt.Sprintf("%s: no linear order of its %d operations was found or ruled out within %v", at.Name, len(all), max(share, 0).Round(time.Millisecond)))
			if r.Linearizable == "yes" {
				r.Linearizable = "unknown"
			}
		case porcupine.Illegal:
			r.Linearizable = "no"
			wrong, picture := explain(begin, all, share)
			wrong.Register = at.Name
			r.Violations = append(r.Violations, wrong)
			if picture != nil && len(r.Pictures) < mostPictures {
				r.Pictures = append(r.Pictures, Picture{at.Name, picture})
			}
		}
	}
}

// search looks for a linear order. porcupine takes no limit for none.
func search(begin register, all []porcupine.Operation, limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(begin), slices.Clone(all), max(limit, 1))
}
