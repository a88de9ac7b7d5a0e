package capture

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// span is the time from the first to the last event of a log, in microseconds since 1970.
type span struct{ from, to int64 }

// coverage ignores gaps in the logs that are shorter than shortestGap. It also ignores times for which logs of some API
// servers are missing, if these times add up to less than shortestShare, or to less than the fraction smallestShare of
// the total time.
const (
	shortestGap   = time.Minute
	smallestShare = 0.05
	shortestShare = 10 * time.Second
)

// coverage returns notes about times without any log, and about times for which logs of some API servers are missing.
// twice means that a log was given twice. coverage then omits the second kind of note, because the number of API
// servers is unknown.
func coverage(spans []span, twice bool) (notes []string) {
	type edge struct {
		at   int64
		step int
	}
	var edges []edge
	for _, s := range spans {
		edges = append(edges, edge{s.from, 1}, edge{s.to, -1})
	}
	// Sort a begin before an end at the same time: there is no gap if one log begins when another ends.
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.step, a.step)) })
	type stretch struct {
		span
		logs int
	}
	var stretches []stretch
	total := int64(0)
	logs := 0
	for i, e := range edges {
		if i > 0 && e.at > edges[i-1].at {
			stretches = append(stretches, stretch{span{edges[i-1].at, e.at}, logs})
			total += e.at - edges[i-1].at
		}
		logs += e.step
	}
	// The number of servers is the largest number of logs that cover the same times, if these times are a significant
	// part of the total time.
	times := map[int]int64{}
	servers := 0
	for _, s := range stretches {
		times[s.logs] += s.to - s.from
	}
	for n, t := range times {
		if float64(t) >= smallestShare*float64(total) {
			servers = max(servers, n)
		}
	}
	var fewer, from, to int64
	for _, s := range stretches {
		length := time.Duration(s.to-s.from) * time.Microsecond
		switch {
		case s.logs == 0 && length >= shortestGap:
			notes = append(notes, fmt.Sprintf("no log covers the time from %s to %s, so requests of these %s are missing", clock(s.from), clock(s.to), length.Round(time.Second)))
		case s.logs < servers:
			fewer += s.to - s.from
		case from == 0:
			from, to = s.from, s.to
		default:
			to = s.to
		}
	}
	if float64(fewer) >= smallestShare*float64(total) && fewer >= shortestShare.Microseconds() && servers > 1 && !twice {
		notes = append(notes, fmt.Sprintf("the logs come from %d API servers, but for %.0f%% of the time at least one server has no log, so its requests are missing (record --from %s --to %s, or add the other logs)",
			servers, 100*float64(fewer)/float64(total), clock(from), clock(to)))
	}
	return notes
}

// clock formats a time in the syntax of --from and --to.
func clock(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339) }
