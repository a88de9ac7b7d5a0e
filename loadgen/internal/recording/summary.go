package recording

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Summary describes the requests in a recording, or the requests that a replay sent.
type Summary struct {
	Requests int64  `json:"requests"`
	Length   Micros `json:"length"`
	// Rate is the number of requests per second.
	Rate float64 `json:"rate"`
	// Dispersion is the variance of the number of requests per second, divided by the mean. It is about 1 for random
	// (Poisson) arrivals, higher for bursts, 0 for evenly spaced requests, and 0 for a length below two seconds.
	Dispersion float64 `json:"dispersion"`
	// Groups holds the numbers of requests by verb, resource and actor, in descending order.
	Groups []Group `json:"groups"`
	// Watches holds quantiles of the time for which watches were open.
	Watches Lengths `json:"watches"`
}

// Lengths are quantiles of durations, rounded down to three significant digits.
type Lengths struct {
	Count int64  `json:"count"`
	P50   Micros `json:"p50"`
	P99   Micros `json:"p99"`
	Max   Micros `json:"max"`
}

// Group counts the requests with the same verb, resource and actor.
type Group struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"` // resource of the requests, such as deployments.apps or pods/status
	// Actor is an index into Header.Actors.
	Actor    int     `json:"actor"`
	Requests int64   `json:"requests"`
	Rate     float64 `json:"rate"`
}

// Share is the number of requests that have one value (Of) of a property, such as the verb.
type Share[K cmp.Ordered] struct {
	Of       K       `json:"of"`
	Requests int64   `json:"requests"`
	Rate     float64 `json:"rate"`
}

// ByVerb returns the number of requests by verb, in descending order of the number.
func (s *Summary) ByVerb() []Share[string] {
	return shares(s, func(g *Group) string { return g.Verb })
}

// ByResource returns the number of requests by resource, in descending order of the number.
func (s *Summary) ByResource() []Share[string] {
	return shares(s, func(g *Group) string { return g.Resource })
}

// ByActor returns the number of requests by actor index, in descending order of the number.
func (s *Summary) ByActor() []Share[int] {
	return shares(s, func(g *Group) int { return g.Actor })
}

func shares[K cmp.Ordered](s *Summary, of func(*Group) K) []Share[K] {
	counts := map[K]int64{}
	for i := range s.Groups {
		counts[of(&s.Groups[i])] += s.Groups[i].Requests
	}
	all := make([]Share[K], 0, len(counts))
	for key, n := range counts {
		all = append(all, Share[K]{key, n, perSecond(n, s.Length)})
	}
	slices.SortFunc(all, func(a, b Share[K]) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Of, b.Of))
	})
	return all
}

func perSecond(n int64, length Micros) float64 {
	if length <= 0 {
		return 0
	}
	return float64(n) / length.D().Seconds()
}

// Tally counts requests for a Summary, in any order. It is not safe for concurrent use.
type Tally struct {
	groups  map[groupKey]int64
	bins    []int32          // number of requests in each second
	watches map[Micros]int64 // number of watches by duration; durations are rounded down to three digits
	total   int64
}

type groupKey struct {
	verb, group, resource, subresource string
	actor                              int
}

// second is the length of the intervals that Dispersion counts.
const second = Micros(time.Second / time.Microsecond)

// NewTally returns an empty Tally.
func NewTally() *Tally { return &Tally{groups: map[groupKey]int64{}, watches: map[Micros]int64{}} }

// Add counts a request that was sent at the given time after the start.
func (t *Tally) Add(r *Request, at Micros) {
	t.total++
	t.groups[groupKey{r.Verb, r.Group, r.Resource, r.Subresource, r.Actor}]++
	if at >= 0 {
		bin := int(at / second)
		if bin >= len(t.bins) {
			t.bins = append(t.bins, make([]int32, bin+1-len(t.bins))...)
		}
		t.bins[bin]++
	}
	if r.Verb == "watch" && r.Took > 0 {
		t.watches[threeDigits(r.Took)]++
	}
}

// Summary returns the summary of the counted requests for a recording of the given length.
func (t *Tally) Summary(length Micros) Summary {
	s := Summary{
		Requests: t.total, Length: length, Rate: perSecond(t.total, length), Groups: make([]Group, 0, len(t.groups)),
		Dispersion: Dispersion(t.bins, int(length/second)), Watches: lengths(t.watches),
	}
	for key, n := range t.groups {
		s.Groups = append(s.Groups, Group{
			Verb: key.verb, Resource: objectName(key.group, key.resource, key.subresource), Actor: key.actor, Requests: n, Rate: perSecond(n, length),
		})
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Actor, b.Actor))
	})
	return s
}

// threeDigits rounds a duration down to three significant digits.
func threeDigits(m Micros) Micros {
	unit := Micros(1)
	for m/unit >= 1000 {
		unit *= 10
	}
	return m / unit * unit
}

// lengths computes the quantiles of watch durations by the nearest-rank method. counts holds the number of watches by
// duration.
func lengths(counts map[Micros]int64) (l Lengths) {
	times := slices.Sorted(maps.Keys(counts))
	for _, n := range counts {
		l.Count += n
	}
	below := int64(0)
	for _, t := range times {
		if 2*below < l.Count {
			l.P50 = t
		}
		if 100*below < 99*l.Count {
			l.P99 = t
		}
		l.Max = t
		below += counts[t]
	}
	return l
}
