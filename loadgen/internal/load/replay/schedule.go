package replay

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Options are the parameters of a replay's schedule.
type Options struct {
	// Name is the load's name. The random shifts of copies depend on Name and Seed.
	Name string
	Seed int64
	// Speed is the positive number by which the replay divides the recorded times of requests.
	Speed float64
	// Copies is how many times the replay contains each actor, at least 1.
	Copies int
}

// OptionsOf returns the options of a load.
func OptionsOf(l scenario.Load, seed int64) Options {
	return Options{Name: l.Name, Seed: seed, Speed: l.Speed, Copies: l.Copies}
}

// Arrival is one request of a schedule: an entry of the recording, for one copy of its actor.
type Arrival struct {
	At    time.Duration
	Entry int32
	Copy  int16
}

// Schedule returns the arrivals of a replay in the order of their times. It omits entries for which the function `keep`
// returns false.
//
// The time of a request is its time in the recording divided by the speed. Lease renewals keep their intervals, because
// clients renew leases at fixed intervals. A faster replay omits the renewals after its end. A slower replay repeats
// all renewals from the beginning. Copy 0 of an actor follows the recording. Each further copy is shifted by a random
// time, uniform over the length of the replay. Requests that the shift moves past the end are sent at the beginning.
// Actors that use the same object have the same shift if any of them writes the object, so that the object exists when
// another actor reads it.
func Schedule(t *recording.Recording, o Options, keep func(entry int) bool) []Arrival {
	period := compress(t.Last()+1, o.Speed)
	shifts := drawShifts(together(t), o, period)
	var all []Arrival
	for i := range t.Entries {
		if keep != nil && !keep(i) {
			continue
		}
		e := &t.Entries[i]
		for at := range timesOf(t, e, o.Speed, period) {
			for c := range o.Copies {
				shifted := at + shifts[c][e.Actor]
				if shifted >= period {
					shifted -= period
				}
				all = append(all, Arrival{shifted, int32(i), int16(c)})
			}
		}
	}
	slices.SortFunc(all, func(a, b Arrival) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Copy, b.Copy))
	})
	return all
}

// compress converts a time of the recording to a time of the replay: it divides the time by the speed.
func compress(at recording.Micros, speed float64) time.Duration {
	return time.Duration(float64(at.D()) / speed)
}

// timesOf returns the times at which the replay sends an entry: exactly one, except for a lease renewal.
func timesOf(t *recording.Recording, e *recording.Entry, speed float64, period time.Duration) func(func(time.Duration) bool) {
	return func(yield func(time.Duration) bool) {
		if s := &t.Shapes[e.Shape]; !recording.RenewsLease(s.Verb, s.Group, s.Resource) {
			yield(compress(e.At, speed))
			return
		}
		for at := e.At.D(); at < period && yield(at); at += (t.Last() + 1).D() {
		}
	}
}

// drawShifts returns the random shift of each actor, by copy and actor. The shift is 0 for copy 0, and equal for all
// actors of a group.
func drawShifts(groups []int, o Options, period time.Duration) [][]time.Duration {
	h := fnv.New64a()
	h.Write([]byte("shift of " + o.Name)) // never fails
	draw := rand.New(rand.NewPCG(uint64(o.Seed), h.Sum64()))
	shifts := make([][]time.Duration, o.Copies)
	for c := range shifts {
		shifts[c] = make([]time.Duration, len(groups))
		of := map[int]time.Duration{}
		for actor, group := range groups {
			shift, drawn := of[group]
			if !drawn && c > 0 {
				shift = time.Duration(draw.Int64N(int64(period)))
				of[group] = shift
			}
			shifts[c][actor] = shift
		}
	}
	return shifts
}

// together returns the number of each actor's group. Actors that use the same object are in the same group if any actor
// writes the object.
func together(t *recording.Recording) []int {
	parent := make([]int, len(t.Actors))
	for i := range parent {
		parent[i] = i
	}
	var root func(int) int
	root = func(i int) int {
		if parent[i] != i {
			parent[i] = root(parent[i])
		}
		return parent[i]
	}
	written := make([]bool, len(t.Objects))
	for _, e := range t.Entries {
		if s := &t.Shapes[e.Shape]; e.Object != recording.None && s.Writes() {
			written[e.Object] = true
		}
	}
	first := make([]int32, len(t.Objects)) // first actor that uses the object, plus 1
	for _, e := range t.Entries {
		if e.Object == recording.None || !written[e.Object] {
			continue
		}
		if first[e.Object] == 0 {
			first[e.Object] = e.Actor + 1
			continue
		}
		a, b := root(int(first[e.Object]-1)), root(int(e.Actor))
		parent[max(a, b)] = min(a, b)
	}
	for i := range parent {
		parent[i] = root(i)
	}
	return parent
}

// pacer is an arrival.Pacer for a schedule. Set the arrivals before the load runs.
type pacer struct{ arrivals []Arrival }

// At returns the time of arrival n.
func (p *pacer) At(n int64) time.Duration {
	if n >= int64(len(p.arrivals)) {
		return arrival.Never
	}
	return p.arrivals[n].At
}

// Due returns the number of arrivals whose time is at most elapsed.
func (p *pacer) Due(elapsed time.Duration) int64 {
	return int64(sort.Search(len(p.arrivals), func(i int) bool { return p.arrivals[i].At > elapsed }))
}
