package check

import (
	"fmt"
	"slices"

	"github.com/stormglass/stormglass/loadgen/result"
)

// span is the range of versions greater than `from` and at most `to`.
type span struct{ from, to uint64 }

// watched compares the log of the watcher with the index `number` to the states in `happened`. It finds changes whose
// events the watcher missed, and events that arrived twice or after a newer version. hidden is the number of changes
// that a relist skipped, which the API allows. If the watcher was not connected at the end, watched cannot judge
// changes after its last event.
func watched(s *states, number int, happened []observation) (wrong []result.Violation, hidden int64, unjudged []string) {
	w := s.h.Watchers[number]
	tell := func(kind string, register int, version uint64, at float64, format string, args ...any) {
		wrong = append(wrong, result.Violation{
			Kind: kind, Register: s.name(register), Watcher: &number, Version: version, AtSecond: at, Detail: fmt.Sprintf(format, args...),
		})
	}
	newest := w.Start
	delivered := map[uint64]bool{}
	var jumped []span
	for _, e := range w.Entries {
		switch e.Kind {
		case Bookmark:
			newest = max(newest, e.Version)
		case Listed:
			if e.Version < newest {
				tell(result.BackwardsRead, -1, e.Version, e.At.Seconds(), "a list returned version %d to a watcher that already knew version %d", e.Version, newest)
				continue
			}
			jumped = append(jumped, span{newest, e.Version})
			newest = e.Version
		case Changed, Deleted:
			switch {
			case e.Version > newest:
				newest = e.Version
			case delivered[e.Version]:
				tell(result.DoubledEvent, e.Register, e.Version, e.At.Seconds(), "the event of version %d arrived again", e.Version)
			default:
				tell(result.ReorderedEvent, e.Register, e.Version, e.At.Seconds(), "the event of version %d arrived after the watcher already knew version %d", e.Version, newest)
			}
			delivered[e.Version] = true
		}
	}
	tail := 0
	for _, v := range happened {
		switch {
		case v.version <= w.Start || delivered[v.version]:
		case slices.ContainsFunc(jumped, func(s span) bool { return s.from < v.version && v.version <= s.to }):
			hidden++
		case v.version > newest && !w.Live:
			tail++
		default:
			tell(result.MissedEvent, v.register, v.version, v.at.Seconds(), "the event of version %d (value %d) never arrived; the watcher's last version was %d", v.version, v.value, newest)
		}
	}
	if tail > 0 {
		unjudged = append(unjudged, fmt.Sprintf("watcher %d was not connected at the end, so it is not known whether %d changes after version %d would have arrived", number, tail, newest))
	}
	return wrong, hidden, unjudged
}
