// Package pace says when the arrivals of an open-loop load are due, as pure
// functions: no goroutine, no clock. The shape is that of vegeta's pacers
// (tsenart/vegeta lib/pacer.go), turned round: a pacer here gives the intended
// time of each arrival rather than a wait from now, since latency counts from
// the intended time and a late dispatcher must not move it.
package pace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Never is the intended time of an arrival that does not come.
const Never = time.Duration(math.MaxInt64)

// MaxRate is the highest rate accepted, in arrivals per second: one per
// microsecond, the resolution of the latencies.
const MaxRate = 1e6

// Pacer is a schedule of arrivals. Its answers depend on its making and the
// arguments alone. It is for one goroutine; calls whose arguments do not
// decrease cost constant time.
type Pacer interface {
	// At is the intended time of arrival n (from 0) since the start; Never if
	// there is no such arrival. It does not decrease with n.
	At(n int64) time.Duration
	// Due is the number of arrivals whose intended time is at most elapsed.
	Due(elapsed time.Duration) int64
}

// New makes the pacer of an arrival process with a mean rate in arrivals per
// second, 0 for none:
//
//   - "constant": arrival n at n/rate, the first at once.
//   - "poisson": independent, exponentially distributed gaps, drawn by seed,
//     as many independent clients make them.
func New(arrival string, rate float64, seed int64) (Pacer, error) {
	if math.IsNaN(rate) || rate < 0 || rate > MaxRate {
		return nil, fmt.Errorf("a rate of %g/s is impossible; write one from 0/s to %.0f/s", rate, float64(MaxRate))
	}
	switch arrival {
	case "constant":
		return constant{gap: float64(time.Second) / rate}, nil
	case "poisson":
		return newPoisson(rate, seed), nil
	}
	return nil, fmt.Errorf("unknown arrival %q; there are constant and poisson", arrival)
}

// constant has the same gap, in nanoseconds, between all arrivals. The gap is
// infinite at rate 0.
type constant struct{ gap float64 }

// At is never far off: n x gap is exact to a nanosecond for 100 days.
func (c constant) At(n int64) time.Duration {
	if math.IsInf(c.gap, 1) {
		return Never
	}
	return toDuration(float64(n) * c.gap)
}

func (c constant) Due(elapsed time.Duration) int64 {
	if elapsed < 0 || math.IsInf(c.gap, 1) {
		return 0
	}
	// The quotient may be off by a rounding: At decides.
	n := int64(float64(elapsed)/c.gap) + 1
	for n > 0 && c.At(n-1) > elapsed {
		n--
	}
	for c.At(n) <= elapsed {
		n++
	}
	return n
}

// poisson is a Poisson process: arrival n comes after the sum of n+1
// exponential gaps. The sum has no closed form, so each question keeps a
// cursor, which moves on for larger arguments and starts over for smaller
// ones: slow, but the answer is the same.
type poisson struct {
	at, due cursor
}

func newPoisson(rate float64, seed int64) *poisson {
	fresh := cursor{mean: float64(time.Second) / rate, seed: uint64(seed)}
	fresh.rewind()
	return &poisson{at: fresh, due: fresh}
}

func (p *poisson) At(n int64) time.Duration {
	if n < p.at.n {
		p.at.rewind()
	}
	for p.at.n < n && p.at.time() != Never {
		p.at.step()
	}
	return p.at.time()
}

func (p *poisson) Due(elapsed time.Duration) int64 {
	if p.due.n > 0 && elapsed < p.due.before {
		p.due.rewind()
	}
	for p.due.time() <= elapsed && p.due.time() != Never {
		p.due.step()
	}
	return p.due.n
}

// cursor stands at arrival n of a Poisson process.
type cursor struct {
	mean   float64 // gap, nanoseconds; infinite at rate 0
	seed   uint64
	source *rand.Rand
	n      int64
	t      float64       // of arrival n, nanoseconds
	before time.Duration // time of arrival n-1
}

func (c *cursor) rewind() {
	// The second word only tells this use of the seed from others.
	c.source = rand.New(rand.NewPCG(c.seed, 0x706f6973736f6e))
	c.n, c.before = 0, 0
	c.t = c.source.ExpFloat64() * c.mean
}

func (c *cursor) step() {
	c.before = c.time()
	c.n++
	c.t += c.source.ExpFloat64() * c.mean
}

func (c *cursor) time() time.Duration { return toDuration(c.t) }

// toDuration rounds nanoseconds; what a Duration cannot hold is Never.
func toDuration(ns float64) time.Duration {
	if !(ns < math.MaxInt64) {
		return Never
	}
	return time.Duration(math.Round(ns))
}
