package promimport

import (
	"cmp"
	"slices"
	"time"
)

// boundary is a phase's boundary for one target.
type boundary struct {
	at int64 // of its samples in the archive, ms by our clock
	// seen is the scrape that was waited for, ms by their clock; 0 if none came.
	seen int64
}

// moment is one scrape of a target as the archive shows it.
type moment struct {
	at int64 // its samples' time in the archive, ms by our clock
	of int64 // the scrape it shows, ms by their clock; 0 if none
	up bool
}

// patience is how many intervals may pass before a scrape is missing.
const patience = 2.5

// moments returns the scrapes of one target from shortly before the first boundary to the
// last, in order of time: its own, moved by the difference of the clocks; those at
// boundaries, which show what was waited for; and a lost one in each gap that is too long.
//
// The scrape that was waited for stands before its boundary and later ones after it, also
// where the clocks' difference, known to a few milliseconds, would have it otherwise.
func moments(ticks []tick, boundaries []boundary, ahead int64, every time.Duration) []moment {
	if len(boundaries) == 0 {
		return nil
	}
	longest := int64(patience * float64(every.Milliseconds()))
	first, last := boundaries[0].at, boundaries[len(boundaries)-1].at
	var all []moment
	var before int64
	for _, t := range ticks {
		at := t.at - ahead
		for _, b := range boundaries {
			switch {
			case b.seen == 0:
			case t.at <= b.seen:
				at = min(at, b.at-1)
			default:
				at = max(at, b.at+1)
			}
		}
		at = max(at, before+1)
		before = at
		if at > first-longest && at < last {
			all = append(all, moment{at: at, of: t.at, up: t.up})
		}
	}
	all = filled(all, first, last, longest)
	for _, b := range boundaries {
		shown := moment{at: b.at}
		for _, t := range ticks {
			if t.at == b.seen {
				shown.of, shown.up = t.at, t.up
			}
		}
		i, _ := slices.BinarySearchFunc(all, b.at, func(m moment, at int64) int { return cmp.Compare(m.at, at) })
		all = slices.Insert(all, i, shown)
	}
	return all
}

// filled puts a lost scrape into every gap from first to end that is too long.
func filled(all []moment, first, end, longest int64) []moment {
	var out []moment
	before := first
	for _, m := range append(all, moment{at: end}) {
		if m.at-before > longest {
			out = append(out, moment{at: before + longest/2})
		}
		if m.at < end {
			out = append(out, m)
		}
		before = max(before, m.at)
	}
	return out
}
